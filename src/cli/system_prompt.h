// The system message of conversations that bring none: --system, or the text of --system-prompt.
#pragma once

#include <string>

#include "cli/session.h"
#include "cli/settings.h"
#include "paceline/chat_template.h"
#include "paceline/llm.h"

namespace paceline {

// The settings with the file of --system-prompt read into `system` and its prefix kept by `llm`,
// unless --system says another message. Throws Error naming the file, or the option when the
// model's template takes no system message.
Settings with_system_prompt(const Settings& settings, LLM& llm, Session& session);

// Puts `system`, unless it is empty, before messages of which none is a system message.
void add_system_message(const std::string& system, ChatInput& input);

}  // namespace paceline
