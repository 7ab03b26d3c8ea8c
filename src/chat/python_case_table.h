// The characters whose upper case has several characters.
#pragma once

#include <string_view>

namespace paceline {

struct LongCapital {
  char32_t code_point;
  std::string_view upper;
  std::string_view title;
};

// Null for all others.
const LongCapital* find_long_capital(char32_t code_point);

}  // namespace paceline
