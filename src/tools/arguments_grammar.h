// The grammar of a call's arguments, as a template writes them.
#pragma once

#include <cstddef>

#include "grammar/grammar.h"
#include "tools/special_text.h"
#include "tools/tool_set.h"
#include "tools/turn_format.h"

namespace paceline {

// Errors as add_turn_grammar's, which name the tool.
RuleId add_arguments_grammar(const ArgumentsFormat& format, const Tool& tool,
                             const SpecialText& special, GrammarBuilder& builder);
// The tools with wider schemas. `widening` 1 widens the schemas that are over a limit on their own,
// 2 widens all. Strict tools stay as they are.
ToolSet wider_tools(const ToolSet& tools, size_t widening, const ArgumentsFormat& format,
                    const SpecialText& special);
// Of arguments as keys and values.
RuleId add_parameters_grammar(const ArgumentsFormat& format, const Tool& tool,
                              const SpecialText& special, GrammarBuilder& builder);

}  // namespace paceline
