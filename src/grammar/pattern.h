// Regular expressions as JSON Schema writes them (ECMA 262 with Unicode), as expressions over
// bytes.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/regex_set.h"

namespace paceline {

// How the matched characters are written: as UTF-8, or as they stand between the quotes of a JSON
// string. There a character has these forms: printable ASCII itself (quote and backslash escaped
// with a backslash), control characters their short escape or \u00XX, others UTF-8 or \uXXXX (a
// pair of surrogates beyond U+FFFF; hexadecimal digits of either case). Every expression that is
// made here matches all forms of a character or none, so that complements are complements.
enum class TextForm : uint8_t { utf8, json };

// Ranges of code points, sorted and apart.
using CodePointRanges = std::vector<std::pair<char32_t, char32_t>>;

RegexId one_of_characters(RegexSet& regexes, const CodePointRanges& ranges, TextForm form);
// Any code point but surrogates.
RegexId any_character(RegexSet& regexes, TextForm form);
// `text` is UTF-8.
RegexId literal_text(RegexSet& regexes, std::string_view text, TextForm form);

enum class PatternMatch : uint8_t {
  whole,     // the pattern matches the whole text
  anywhere,  // a part of it, as JSON Schema's `pattern` does, unless anchored
};

// Error invalid: malformed, with the position. Error unsupported: look-behind, back-references and
// word boundaries, and look-ahead inside of a repetition, by name.
RegexId parse_pattern(RegexSet& regexes, std::string_view pattern, TextForm form,
                      PatternMatch match);

}  // namespace paceline
