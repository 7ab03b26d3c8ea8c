// The properties of Unicode that a pattern may name as \p{...}.
#pragma once

#include <optional>
#include <string_view>

#include "grammar/code_points.h"

namespace paceline {

// `property` is what stands between the braces: a general category by its short or long name
// ("Lu", "Uppercase_Letter", "gc=Lu"), Any, ASCII or Assigned, or a common script ("sc=Latin",
// "Script=Latn"). Nothing when it is none of them.
std::optional<CodePointRanges> unicode_property(std::string_view property);

}  // namespace paceline
