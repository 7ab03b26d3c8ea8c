// NumberRange is the range of a number, and its wording in messages.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

namespace paceline {

struct NumberRange {
  double min = std::numeric_limits<double>::lowest();
  double max = std::numeric_limits<double>::max();
  bool above_min = false;  // the minimum itself is not allowed

  // NaN and infinities are in no range. A bound that T can't hold is the nearest value that it can.
  template <class T>
  constexpr bool contains(T value) const {
    using Number = std::conditional_t<std::is_same_v<T, float>, float, double>;
    const auto number = static_cast<Number>(value);
    const auto lowest = static_cast<Number>(min), highest = static_cast<Number>(max);
    return (above_min ? number > lowest : number >= lowest) && number <= highest;
  }
};

// `noun` with the bounds: "a number from 0 to 2", "an integer above 0 and at most 8", "a number
// from 0 on".
std::string range_words(std::string_view noun, const NumberRange& range);

}  // namespace paceline
