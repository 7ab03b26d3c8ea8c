// Decimal numbers without a sign whose value lies in a range, as a regular expression.
#pragma once

#include <optional>

#include "grammar/decimal.h"
#include "grammar/regex_set.h"

namespace paceline {

// The signs of the bounds don't count.
struct MagnitudeRange {
  Decimal min;
  bool excludes_min = false;
  std::optional<Decimal> max;
  bool excludes_max = false;
};

RegexId magnitudes_between(RegexSet& regexes, const MagnitudeRange& range);

// Any digits behind a point, or none.
RegexId any_fraction(RegexSet& regexes);

}  // namespace paceline
