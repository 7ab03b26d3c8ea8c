// NumberRange is what a number may be; messages say it in the same words everywhere.
#pragma once

#include <limits>
#include <string>
#include <string_view>

namespace paceline {

struct NumberRange {
  double min = std::numeric_limits<double>::lowest();
  double max = std::numeric_limits<double>::max();
  bool above_min = false;  // the minimum itself is not allowed

  // NaN and infinities are in no range.
  constexpr bool contains(double value) const {
    return (above_min ? value > min : value >= min) && value <= max;
  }
};

// `noun` with the bounds: "a number from 0 to 2", "an integer above 0 and at most 8", "a number
// from 0 on".
std::string range_words(std::string_view noun, const NumberRange& range);

}  // namespace paceline
