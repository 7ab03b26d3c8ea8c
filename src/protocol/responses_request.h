// responses::Request is the body of POST /v1/responses, and of /compact and /input_tokens beneath
// it.
#pragma once

#include <string>
#include <string_view>

#include "protocol/dialect.h"
#include "protocol/responses_input.h"
#include "protocol/responses_tools.h"

namespace paceline::responses {

struct Request {
  ChatRequest chat;  // as the same conversation over /v1/chat/completions would be
  ItemHistory conversation;
  OfferedTools tools;
  std::string echo;  // the members that an answer has of its request: JSON without braces
  bool is_stored = true;
  bool is_background = false;
  bool seals_reasoning = false;
  bool summarises_reasoning = false;  // reasoning stands in the summary of its item
};

// The prompt that makes the served model summarise a conversation.
extern const std::string_view kCompactionPrompt;

// Throw RequestError naming the first field that is wrong, unknown or not supported.
Request parse_request(const Json& body, const CallTerms& terms);
// The fields that make the prompt, of a request that asks for its tokens or its compaction.
Request parse_prompt(const Json& body, const CallTerms& terms);
// The same, whose chat asks for a summary of what stands in it.
Request parse_compaction(const Json& body, const CallTerms& terms);

FieldList request_fields();
FieldList prompt_fields();

}  // namespace paceline::responses
