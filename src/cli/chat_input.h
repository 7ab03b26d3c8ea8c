// What a chat's options make of a conversation.
#pragma once

#include "cli/conversation.h"
#include "cli/settings.h"
#include "paceline/chat_template.h"

namespace paceline {

// The template's input for the next answer.
inline ChatInput chat_input(const Conversation& conversation, const Settings& settings) {
  return {.messages = conversation.messages(), .kwargs_json = settings.chat_template_kwargs};
}

}  // namespace paceline
