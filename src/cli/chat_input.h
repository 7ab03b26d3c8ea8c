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

// For the next answer of a conversation.
ChatInput chat_input(const Conversation& conversation, const Settings& settings);

// From the fields messages, tools, documents and `kwargs_field` of a line. --chat-template-kwargs
// is the default of the latter, --system that of a system message. Throws Error invalid naming the
// field that is missing or wrong.
ChatInput read_chat_input(const Json& line, std::string_view kwargs_field,
                          const Settings& settings);

// The settings with the file of --system-prompt read into `system` and its prefix kept by `llm`,
// unless --system says another message. Throws Error naming the file, or the option when the
// model's template takes no system message.
Settings with_system_prompt(const Settings& settings, LLM& llm, Session& session);

// Puts `system`, unless it is empty, before messages of which none is a system message.
void add_system_message(const std::string& system, ChatInput& input);

}  // namespace paceline
