// PreparedRequest is an API request that has been parsed, checked and tokenised.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/request.h"
#include "protocol/chat_request.h"
#include "protocol/completion_request.h"
#include "protocol/llama_response.h"
#include "server/request_rules.h"
#include "text/completion_builder.h"
#include "text/text_model.h"

namespace paceline {

// One prompt.
struct PreparedPart {
  GenerateRequest request;
  std::vector<CompletionBuilder> choices;  // n of them, or best_of
};

// The last two are llama.cpp's.
enum class ApiEndpoint : uint8_t { completions, chat, generate, completion, infill };

using GenerationRequest = std::variant<CompletionRequest, ChatRequest>;

struct PreparedRequest {
  ApiEndpoint endpoint = ApiEndpoint::completions;
  GenerationRequest request;
  std::vector<PreparedPart> parts;
  int64_t prompt_logprob_bytes = 0;  // about, of the log-probabilities of prompts in the response
  // Of llama.cpp's endpoints: what their answers have besides.
  LlamaStyle llama_style;
  std::vector<LlamaPrompt> llama_prompts;  // one for each part
};

// A body of one of llama.cpp's endpoints, its prompts encoded. Throws as prepare_request does.
LlamaRequest read_llama_request(const TextModel& model, ApiEndpoint endpoint, const Json& body,
                                const RequestRules& rules);
// Makes fill-in-the-middle prompts of the prompts and the suffix. Throws RequestError where the
// model, or the rest of the request, has no place for a suffix.
void set_suffix_prompts(const TextModel& model, CompletionRequest& request);
// Fills in what answers of llama.cpp's endpoints have besides; the parts are prepared.
void add_llama_answers(const TextModel& model, const RequestRules& rules, bool returns_tokens,
                       PreparedRequest& prepared);

// Throws RequestError unless the model is absent or one of `names`.
void check_model_name(const std::optional<std::string>& model,
                      const std::vector<std::string>& names);

// Any thread. Throws RequestError for an invalid body, and Error naming the field for a request
// that can never run.
PreparedRequest prepare_request(const TextModel& model, ApiEndpoint endpoint,
                                const ReceivedRequest& received, const RequestRules& rules);

}  // namespace paceline
