// RequestTerms are what a server lets requests ask for, beyond the limits that are the same for
// all.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace paceline {

struct RequestTerms {
  uint64_t max_choices = 128;  // the greatest n
  // Told the path of each unknown field, which is left alone then; none: they are refused.
  std::function<void(const std::string& path)> on_unknown_field = {};
};

}  // namespace paceline
