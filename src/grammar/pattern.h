// Regular expressions as JSON Schema writes them (ECMA 262 with Unicode), as expressions over
// bytes.
//
// The dialect is that of JavaScript's flag `u`, and beyond it: `{`, `}` and `]` may stand for
// themselves, a backslash may stand before any ASCII character but letters and digits, look-ahead
// may be repeated (all of annex B of ECMA 262), `(?P<name>` may name a group, and a pattern may
// begin with `(?i)` (either case of ASCII letters) or `(?s)` (a dot is any character). Scripts and
// binary properties other than those of unicode_property.h are unsupported.
#pragma once

#include <cstdint>
#include <string_view>

#include "grammar/regex_set.h"
#include "grammar/text_form.h"

namespace paceline {

enum class PatternMatch : uint8_t {
  whole,     // the pattern matches the whole text
  anywhere,  // a part of it, as JSON Schema's `pattern` does, unless anchored
};

// Error invalid: malformed, with the position. Error unsupported: look-behind, back-references,
// word boundaries, and most look-ahead and anchors inside of a repetition, by name. Error
// exhausted: nested more than 64 deep, or over another limit. The texts that it matches are
// well-formed in `form`.
RegexId parse_pattern(RegexSet& regexes, std::string_view pattern, TextForm form,
                      PatternMatch match);

}  // namespace paceline
