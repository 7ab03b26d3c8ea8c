// The messages of Anthropic's Messages API: blocks of text, thinking, tool calls and results.
#pragma once

#include <string>
#include <vector>

#include "paceline/chat_template.h"
#include "protocol/anthropic_request.h"
#include "protocol/field_info.h"
#include "protocol/field_value.h"

namespace paceline::anthropic {

// A text, or blocks. The size of the body bounds how many.
FieldList block_fields();
inline constexpr FieldType kBlock = object_type(block_fields);
inline constexpr FieldType kContents[] = {kAnyText, array_type(kBlock, 0, kNoMaximum)};
inline constexpr FieldType kContent = one_of_type(kContents, "a string or an array of blocks");

FieldList message_fields();
inline constexpr FieldType kMessage = object_type(message_fields);

// The conversation in the making. Messages become what chat templates expect: results of tools are
// messages of their own, a call's input is an object, and an instruction of the system within the
// conversation stands, as <system-reminder>, where it was sent, so that a prompt begins as the one
// of the turn before. Client counters are left out unless the terms keep them.
struct History {
  SignatureReader signatures;
  std::vector<ChatMessage> messages;
  bool is_answer_open = false;        // the last message is the beginning of the answer
  std::vector<std::string> warnings;  // what was left out of tools' results
};

void read_system(const FieldValue& value, History& history);
void read_messages(const FieldValue& value, History& history);

}  // namespace paceline::anthropic
