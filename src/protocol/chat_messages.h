// The messages of a chat request, as chat templates take them.
#pragma once

#include <string>
#include <vector>

#include "paceline/chat_template.h"
#include "protocol/field_info.h"
#include "protocol/field_value.h"

namespace paceline {

constexpr uint64_t kMaxMessages = 1024;

// A content: a string, or parts of text.
FieldList content_part_fields();
inline constexpr FieldType kContentPart = object_type(content_part_fields);
inline constexpr FieldType kContentKinds[] = {kAnyText, array_type(kContentPart, 0, kMaxMessages)};
inline constexpr FieldType kContent = one_of_type(kContentKinds, "a string or an array of parts");

FieldList message_fields();
inline constexpr FieldType kMessage = object_type(message_fields);
inline constexpr FieldType kMessages = array_type(kMessage, 1, kMaxMessages);

// Converts messages to what the templates of open models expect: content in parts is joined with
// line breaks, missing content becomes an empty text, the JSON arguments of a call become an
// object, and the role developer becomes system.
std::vector<ChatMessage> read_messages(const FieldValue& value);

// The text of a content; parts are joined with line breaks.
std::string read_content(const FieldValue& value);

// Throws RequestError for continue_final_message together with add_generation_prompt.
void check_continuation(const ChatInput& input);

// Further variables of the template as JSON. Throws RequestError for a variable that the request
// itself sets.
std::string read_template_variables(const FieldValue& value);

}  // namespace paceline
