// Text padded to a width in characters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "chat/template_runtime.h"

namespace paceline {

inline constexpr int64_t kMaxPadding = 100'000;

enum class Alignment {
  left,
  right,
  center,      // of "{:^5}": an odd blank stands on the right
  str_center,  // of str.center: on the left where the width is odd
};

// Charged for; more padding than kMaxPadding is a TemplateError exhausted.
std::string padded(TemplateRuntime& runtime, std::string_view text, int64_t width,
                   std::string_view fill, Alignment alignment);

}  // namespace paceline
