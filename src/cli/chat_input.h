// Makes the input of a chat template from options and lines of JSON.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "cli/conversation.h"
#include "cli/session.h"
#include "cli/settings.h"
#include "paceline/chat_template.h"
#include "paceline/llm.h"

namespace paceline {

// The input for the next answer of a conversation.
ChatInput chat_input(const Conversation& conversation, const Settings& settings);

// Reads the fields messages, tools, documents and `kwargs_field` of a line. --chat-template-kwargs
// is the default of the last one, --system that of a system message. Throws Error invalid naming
// the missing or wrong field.
ChatInput read_chat_input(const Json& line, std::string_view kwargs_field,
                          const Settings& settings);

// Reads the fields tool_choice, parallel_tool_calls and reasoning_effort of a line, spelled as in
// OpenAI's API. Throws Error invalid naming the field.
ChatOptions read_chat_options(const Json& line);

// Reads the file of --system-prompt into the settings' `system` and keeps its prefix in `llm`,
// unless --system gives another message. Throws Error naming the file, or the option when the
// model's template takes no system message.
Settings with_system_prompt(const Settings& settings, LLM& llm, Session& session);

// Puts `system` before the messages, unless it is empty or they have a system message.
void add_system_message(const std::string& system, ChatInput& input);

}  // namespace paceline
