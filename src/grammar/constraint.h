// compile_constraint makes the grammar of what a request demands of its text.
#pragma once

#include <cstddef>
#include <functional>

#include "grammar/grammar.h"
#include "paceline/constraint_spec.h"

namespace paceline {

// Error invalid (malformed), unsupported (can't be enforced) or exhausted (over a limit). A schema
// under best effort that is over a limit is replaced by one that accepts more, with a warning.
Grammar compile_constraint(const ConstraintSpec& spec, const GrammarLimits& limits = {},
                           JsonTexts texts = JsonTexts::written);

// The same as a rule of `builder`, for a grammar that has more.
RuleId add_constraint(const ConstraintSpec& spec, GrammarBuilder& builder);

// Calls `compile` with how far schemas are widened: 0, and as long as the grammar is over a limit
// the next number up to `most`. A grammar of widened schemas has a warning.
Grammar compile_within_limits(size_t most, const std::function<Grammar(size_t)>& compile);

}  // namespace paceline
