// The messages of a chat request, as a template is given them.
#pragma once

#include <string>
#include <vector>

#include "paceline/chat_template.h"
#include "protocol/field_info.h"
#include "protocol/field_value.h"

namespace paceline {

constexpr uint64_t kMaxMessages = 1024;

FieldList message_fields();
inline constexpr FieldType kMessage = object_type(message_fields);
inline constexpr FieldType kMessages = array_type(kMessage, 1, kMaxMessages);

// Content in parts becomes one text, a line break between its parts, and missing content an empty
// one; the arguments of a call in the history become the object that they are the JSON of; the role
// developer becomes system. That is what the templates of open models are written for.
std::vector<ChatMessage> read_messages(const FieldValue& value);

// Throws RequestError when the last message is to go on and the beginning of an answer is asked for
// too.
void check_continuation(const ChatInput& input);

// Further variables of the template as JSON; those that the request itself sets are refused.
std::string read_template_variables(const FieldValue& value);

}  // namespace paceline
