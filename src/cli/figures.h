// Formats numbers for people: three significant digits, thousands grouped, never an exponent.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace paceline {

// Puts commas between the thousands before the decimal point: "-1,234.5".
std::string grouped(std::string digits);

// "1,234,567".
std::string grouped_digits(int64_t value);

// "1,234,567"; "12.3" below a hundred.
std::string grouped_number(double value);
template <std::integral T>
std::string grouped_number(T value) {
  return grouped_number(static_cast<double>(value));
}

// "12.3 MiB"
std::string bytes_text(double bytes);
template <std::integral T>
std::string bytes_text(T bytes) {
  return bytes_text(static_cast<double>(bytes));
}

// "thread" of 1, else "threads".
std::string plural_of(std::string_view unit, int64_t count);

// "1,234,567", "59.3", "0.00123"; "-" for NaN and infinities. At most six decimals.
std::string figure(double value);

// With the unit's prefix chosen after rounding: 999.7e9 FLOP/s is "1.00 TFLOP/s".
std::string figure_of(double value, std::string_view unit);

// "850 ns", "41.5 µs", "3.79 s" (of 3,790 ms), "1,200 s".
std::string duration_figure(double seconds);

// Tokens of speculative decoding.
struct DraftCounts {
  int64_t drafted = 0;
  int64_t accepted = 0;  // of these, drawn
  int64_t output = 0;    // drawn in all

  // Tokens that a sequence draws in a step: each draws one beside the drafted ones.
  double tokens_per_step() const;
};

// "drafted 120 tokens, accepted 90 (75%), 2.3 tokens a step".
std::string draft_figures(const DraftCounts& counts);

// A fraction as a percentage: "62%", "4.1%" below ten.
std::string share_figure(double fraction);

}  // namespace paceline
