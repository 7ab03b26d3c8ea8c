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
  center,  // an odd blank goes to the left where the width is odd
};

// Charged to the budget; throws TemplateError exhausted for more padding than kMaxPadding.
std::string padded(TemplateRuntime& runtime, std::string_view text, int64_t width,
                   std::string_view fill, Alignment alignment);

}  // namespace paceline
