// What the options and the lines of chats say, as the input of a chat template.
#pragma once

#include <string_view>

#include "base/json.h"
#include "cli/conversation.h"
#include "cli/settings.h"
#include "paceline/chat_template.h"

namespace paceline {

// For the next answer of a conversation.
ChatInput chat_input(const Conversation& conversation, const Settings& settings);

// The fields messages, tools and documents of a line, and `kwargs_field`, which
// --chat-template-kwargs stands in for, as --system does for a system message. Throws Error invalid
// naming the field that is missing or wrong.
ChatInput read_chat_input(const Json& line, std::string_view kwargs_field,
                          const Settings& settings);

}  // namespace paceline
