// Conversions to numbers like Python's int() and float().
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace paceline {

// From a string: nothing where Python raises ValueError. parse_int throws TemplateError beyond 64
// bits.
std::optional<int64_t> parse_int(std::string_view text, int base);
std::optional<double> parse_float(std::string_view text);

// int(value), towards zero. Throws TemplateError beyond 64 bits.
int64_t truncated(double value);

}  // namespace paceline
