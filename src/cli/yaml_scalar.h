// The value of a YAML scalar without quotes.
#pragma once

#include <optional>
#include <string_view>

#include "base/json.h"

namespace paceline {

// Null, a boolean, a number or the text itself. Nothing for numbers that readers of YAML disagree
// about: with leading zeros (octal in YAML 1.1), or not a number.
std::optional<Json> plain_yaml_scalar(std::string_view text);

}  // namespace paceline
