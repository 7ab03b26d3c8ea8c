// How the characters of a text are written in bytes: as UTF-8, or between the quotes of a JSON
// string.
#pragma once

#include <cstdint>
#include <string_view>

#include "grammar/code_points.h"
#include "grammar/regex_set.h"

namespace paceline {

// In `json` a character has these forms: printable ASCII itself (quote and backslash escaped with a
// backslash), control characters below U+0020 their short escape or \u00XX, others UTF-8 or \uXXXX
// (a pair of surrogates beyond U+FFFF; hexadecimal digits of either case). Every expression that is
// made here matches all forms of a character or none, so that complements are complements.
enum class TextForm : uint8_t { utf8, json };

// Surrogates among the ranges match nothing. Equal sets give equal expressions.
RegexId one_of_characters(RegexSet& regexes, const CodePointRanges& ranges, TextForm form);
// Any code point but surrogates.
RegexId any_character(RegexSet& regexes, TextForm form);
// `text` is UTF-8.
RegexId literal_text(RegexSet& regexes, std::string_view text, TextForm form);

}  // namespace paceline
