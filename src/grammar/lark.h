// Lark's notation for grammars, with the extensions of llguidance (its docs/syntax.md).
#pragma once

#include <string_view>

#include "grammar/source_grammar.h"

namespace paceline {

// Reads the rules of `text` into `source` and returns the rule of all texts: `start`, with the
// terminals of %ignore before, between and behind its terminals. A text is in the language when
// some split into terminals fits: no lexer prefers the longest one, and priorities change nothing.
SourceRuleId parse_lark(std::string_view text, SourceGrammar& source);

}  // namespace paceline
