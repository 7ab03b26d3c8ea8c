// The tools of the Responses API: functions, custom tools (functions of one text) and hosted ones,
// which are left out.
#pragma once

#include <string>
#include <vector>

#include "protocol/chat_request.h"
#include "protocol/chat_tools.h"

namespace paceline::responses {

struct OfferedTools {
  std::vector<std::string> custom;  // names
  std::vector<std::string> hosted;  // kinds that were left out
};

FieldList tool_fields();
inline constexpr FieldType kTool = object_type(tool_fields);
inline constexpr FieldType kTools = array_type(kTool, 0, kMaxTools);

FieldList tool_choice_fields();
inline constexpr FieldType kToolChoiceKinds[] = {word_type(kToolChoiceWords),
                                                 object_type(tool_choice_fields)};
inline constexpr FieldType kToolChoice =
    one_of_type(kToolChoiceKinds, "none, auto, required, or an object that names tools");

// Adds the tools to the chat, and a warning for each hosted one. Throws RequestError.
void read_tools(const FieldValue& value, ChatRequest& chat, OfferedTools& offered);
// After the tools. Throws RequestError for one that is left out or isn't there.
void read_tool_choice(const FieldValue& value, const OfferedTools& offered, TurnRequest& turn);

}  // namespace paceline::responses
