// compile_constraint makes the grammar of what a request demands of its text.
#pragma once

#include "grammar/grammar.h"
#include "paceline/constraint_spec.h"

namespace paceline {

// Error invalid (malformed), unsupported (can't be enforced) or exhausted (over a limit).
Grammar compile_constraint(const ConstraintSpec& spec, const GrammarLimits& limits = {});

// The same as a rule of `builder`, for a grammar that has more.
RuleId add_constraint(const ConstraintSpec& spec, GrammarBuilder& builder);

}  // namespace paceline
