// ChatRequest is the body of POST /v1/chat/completions.
#pragma once

#include <cstdint>
#include <optional>

#include "paceline/chat_template.h"
#include "protocol/request_fields.h"
#include "text/chat_turn.h"

namespace paceline {

struct ChatRequest {
  CommonFields common;
  GenerateOptions options;
  GenerationFields generation;

  // The template's input: messages as templates expect them (content in parts as one text, a call's
  // arguments as an object), tools, documents and further variables.
  ChatInput input;
  TurnRequest turn;
  bool drops_oldest = false;  // messages of a prompt that exceeds the context
  bool logprobs = false;
  int32_t top_logprobs = 0;           // alternatives beside each token, 0 to 20
  std::vector<std::string> warnings;  // what was left out of the messages, in sentences

  // Alternatives reported beside each token; nothing: no log-probabilities are reported.
  std::optional<int32_t> num_alternatives() const {
    return paceline::num_alternatives(options,
                                      logprobs ? std::optional(top_logprobs) : std::nullopt);
  }
};

// Throws RequestError naming the first field that is wrong, unknown or not supported.
ChatRequest parse_chat_request(const Json& body, const RequestTerms& terms = {});

// What the fields of a chat mean together, whichever API they came by. Throws RequestError for a
// tool_choice that no tool can meet.
void finish_chat_request(const Json& body, ChatRequest& request);

FieldList chat_request_fields();

}  // namespace paceline
