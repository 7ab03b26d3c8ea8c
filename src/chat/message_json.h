// The members of a conversation's messages, as JSON.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/json.h"
#include "paceline/chat_template.h"

namespace paceline {

// The message as an object. Throws Error invalid "messages[INDEX]: ..." when its JSON is none.
Json message_json(const ChatMessage& message, size_t index);

// Empty when the member is missing or no text.
std::string text_member(const Json& message, std::string_view key);

// The text of the content; that of parts is joined, a missing one is empty.
std::string content_text(const Json& message);

// Sets this member, in the place of an old one or after the others.
void set_member(Json::Object& members, std::string_view key, Json value);
Json with_member(const Json& message, std::string_view key, Json value);
Json without_member(const Json& message, std::string_view key);

}  // namespace paceline
