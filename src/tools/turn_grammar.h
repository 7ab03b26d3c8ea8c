// The grammar of a model's turn: reasoning, content and tool calls, as its template writes them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "grammar/grammar.h"
#include "paceline/options.h"
#include "tools/tool_set.h"
#include "tools/turn_format.h"

namespace paceline {

struct TurnGrammarOptions {
  ToolChoice choice = ToolChoice::automatic;
  std::string tool_name = {};
  bool parallel_calls = true;                        // where the template can write several
  bool begins_in_reasoning = false;                  // ReasoningFormat::is_opened_by of the prompt
  std::span<const std::string> special_tokens = {};  // their texts
  std::span<const std::string> end_tokens =
      {};  // texts of tokens that end the turn; no turn holds one
  // Adds what an answer without calls must be; without it an answer is any text.
  std::function<RuleId(GrammarBuilder&)> content = {};
};

// A rule of all turns that the options allow. Reasoning may stand in front of all else, and is any
// text. Arguments obey the schemas of the tools; where a template writes them in a notation that
// isn't JSON, what types, properties, items and constants say. Error unsupported when calls are
// asked for and the format has none; invalid when a schema can't be enforced, or there is no tool
// of that name.
RuleId add_turn_grammar(const TurnFormat& format, const ToolSet& tools,
                        const TurnGrammarOptions& options, GrammarBuilder& builder);

}  // namespace paceline
