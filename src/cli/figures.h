// Formats numbers for people: three significant digits, thousands grouped, never an exponent.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

// Puts commas between the thousands before the decimal point: "-1,234.5".
std::string grouped(std::string digits);

// "1,234,567", "59.3", "0.00123"; "-" for NaN and infinities. At most six decimals.
std::string figure(double value);

// With the unit's prefix chosen after rounding: 999.7e9 FLOP/s is "1.00 TFLOP/s".
std::string figure_of(double value, std::string_view unit);

// "850 ns", "41.5 µs", "3.79 s" (of 3,790 ms), "1,200 s".
std::string duration_figure(double seconds);

// A fraction as a percentage: "62%", "4.1%" below ten.
std::string share_figure(double fraction);

}  // namespace paceline
