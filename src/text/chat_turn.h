// A chat's prompt, what the answer may be, and how it is read.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/request.h"
#include "paceline/chat_template.h"
#include "paceline/options.h"
#include "text/text_model.h"
#include "tools/tool_set.h"
#include "tools/turn_format.h"
#include "tools/turn_grammar.h"

namespace paceline {

// What a chat asks of the turn, with the tools that may be called.
struct TurnRequest : ChatOptions {
  std::vector<ToolSpec> tools;
  std::vector<TokenId> context = {};  // earlier turns, in front of the prompt
  // Ids of calls for which the model writes none; empty: call_0, call_1, ... in each answer.
  std::function<std::string()> make_call_id = {};

  bool may_call() const { return !tools.empty() && tool_choice != ToolChoice::none; }
};

// What is wrong with tool_choice; empty: nothing.
std::string tool_choice_problem(const TurnRequest& asked);

// How the answer's text is taken apart.
struct TurnShape {
  std::shared_ptr<const TurnFormat> format;
  std::shared_ptr<const ToolSet> tools;
  bool begins_in_reasoning = false;
  bool reads_calls = false;
  bool must_call = false;                          // the turn is calls, reasoning apart
  std::function<std::string()> make_call_id = {};  // as asked
};

struct ChatTurn {
  std::vector<TokenId> prompt;
  // Its tokens before the beginning of the answer, if the engine keeps states; 0: unknown.
  int64_t num_before_answer = 0;
  std::optional<TurnShape> shape;          // nothing: the answer is one text
  std::shared_ptr<Constraint> constraint;  // of the whole turn; null: options.constraint holds
};

// Sets the template's variables of a reasoning effort, where it has any and the input sets none.
void set_reasoning_effort(const TextModel& model, const std::string& effort, ChatInput& input);

// Renders and encodes the conversation and sets the defaults of chats in `options`. Throws Error
// not_found when the model has no chat template; invalid when tool_choice names no tool, or when a
// tool's parameters can't be enforced; and what rendering throws.
ChatTurn prepare_chat_turn(const TextModel& model, const ChatInput& input, const TurnRequest& asked,
                           GenerateOptions& options);

// The engine's request for it.
GenerateRequest make_chat_request(const TextModel& model, ChatTurn turn, GenerateOptions options);

}  // namespace paceline
