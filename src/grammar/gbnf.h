// GBNF, the notation of llama.cpp (its grammars/README.md).
#pragma once

#include <string_view>

#include "grammar/source_grammar.h"

namespace paceline {

// Reads the rules of `text` into `source` and returns the rule `root`. Errors name the place.
SourceRuleId parse_gbnf(std::string_view text, SourceGrammar& source);

}  // namespace paceline
