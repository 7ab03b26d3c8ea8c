// Grammars in the notations that people write: GBNF and Lark's.
#pragma once

#include <string_view>

#include "grammar/grammar.h"

namespace paceline {

inline constexpr size_t kMaxGrammarBytes = 256 << 10;

// GBNF has rules `name ::= ...`, Lark's notation `name: ...`. The language is that of the grammar,
// exactly, over the bytes of UTF-8. Errors name line and column.
Grammar compile_grammar_text(std::string_view text, const GrammarLimits& limits = {});

// The same as a rule of `builder`, for a grammar that has more.
RuleId add_grammar_text(std::string_view text, GrammarBuilder& builder);

}  // namespace paceline
