// anthropic::Request is the body of POST /v1/messages, and of /v1/messages/count_tokens.
#pragma once

#include "protocol/chat_request.h"
#include "protocol/seal.h"

namespace paceline::anthropic {

struct Request {
  ChatRequest chat;             // as the same conversation over /v1/chat/completions would be
  bool shows_reasoning = true;  // false: blocks of thinking have only their signature
};

// What opens signatures: the reasoning of such a block is the sealed one, of others what they say.
struct SignatureReader {
  const Seal* seal = nullptr;  // null: opens none
  SealScope scope = {};
};

// Each throws RequestError naming the first field that is wrong, unknown or not supported.
Request parse_request(const Json& body, const RequestTerms& terms = {},
                      const SignatureReader& signatures = {});
// Without the fields that are only about the answer.
Request parse_prompt(const Json& body, const RequestTerms& terms = {},
                     const SignatureReader& signatures = {});

FieldList request_fields();
FieldList prompt_fields();

// A text, or blocks.
FieldList block_fields();
inline constexpr FieldType kBlock = object_type(block_fields);
inline constexpr FieldType kContent = text_or_array_type<kBlock>("a string or an array of blocks");

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
