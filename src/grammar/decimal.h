// Decimal is the exact value of a JSON number.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

struct Decimal {
  bool is_negative = false;  // zero isn't
  std::string whole;         // digits before the point, without leading zeros
  std::string fraction;      // digits after the point, without trailing zeros

  bool is_zero() const { return whole.empty() && fraction.empty(); }
};

// `text` is a number as JSON writes it. Error invalid when it isn't one. Error exhausted when its
// value has more than 400 digits before or behind the point.
Decimal parse_decimal(std::string_view text);

// Below, equal or above 0 as the magnitude of `a` is less than, equal to or greater than that of
// `b`.
int compare_magnitudes(const Decimal& a, const Decimal& b);

}  // namespace paceline
