#include "base/number_range.h"

#include <fmt/format.h>

namespace paceline {

std::string range_words(std::string_view noun, const NumberRange& range) {
  const bool has_min = range.min > NumberRange{}.min;
  const bool has_max = range.max < NumberRange{}.max;
  if (!has_min && !has_max) return std::string(noun);
  if (!has_max && range.above_min) return fmt::format("{} above {}", noun, range.min);
  if (!has_max) return fmt::format("{} from {} on", noun, range.min);
  if (range.above_min) return fmt::format("{} above {} and at most {}", noun, range.min, range.max);
  return fmt::format("{} from {} to {}", noun, range.min, range.max);
}

}  // namespace paceline
