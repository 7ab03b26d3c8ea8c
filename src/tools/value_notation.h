// Reads values that a template writes in a notation of its own: JSON, Python's repr, or another.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "tools/turn_format.h"

namespace paceline {

// The value that is the whole of `text`, blanks around it apart; nothing when it isn't one. The
// constants of JSON and of Python are read in any notation. Nested at most 64 deep.
std::optional<Json> read_value(std::string_view text, const ValueNotation& notation);

// How the notation writes a value.
std::string written_value(const Json& value, const ValueNotation& notation);

// The text of a string, between its quotes, without its escapes; nothing when they are malformed.
std::optional<std::string> unescaped(std::string_view text, StringNotation::Escapes escapes);

}  // namespace paceline
