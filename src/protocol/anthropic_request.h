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

}  // namespace paceline::anthropic
