// LlamaRequest is the body of llama.cpp's POST /completion and POST /infill, in part; their answers
// have the format of llama.cpp's server.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/request.h"
#include "protocol/completion_request.h"
#include "protocol/response.h"

namespace paceline {

// A completion whose prompts are mixed, or a gap.
struct LlamaRequest : CompletionRequest {
  bool returns_tokens = false;  // of a whole result; the events of a stream always have them
};

// Each throws RequestError naming the first field that is wrong, unknown or not supported.
LlamaRequest parse_llama_request(const Json& body, const RequestTerms& terms = {});
// With at most one prompt.
LlamaRequest parse_infill_request(const Json& body, const RequestTerms& terms = {});

FieldList llama_request_fields();
FieldList infill_request_fields();

// A prompt as the engine sees it, for the results of its choices.
struct LlamaPrompt {
  std::string text;           // with the special tokens that were added
  std::string settings_json;  // llama_settings_json() of its request
};

// What all results of a request have in common.
struct LlamaStyle {
  std::string model;
  int64_t context = 0;          // tokens of a prompt and its text together, at most
  int64_t max_drafted = 0;      // tokens in a step, of the server's drafter; 0: it has none
  bool returns_tokens = false;  // of a whole result; the events of a stream always have them
  bool has_probabilities = false;
  int32_t num_probs = 0;  // alternatives beside each token
  bool is_streamed = false;
  TokenNaming naming = TokenNaming::text;
};

// The object "generation_settings": the options in use, and llama.cpp's others as switched off.
std::string llama_settings_json(const GenerateRequest& request, const LlamaStyle& style);

// One choice's result, or an array of several.
std::string llama_response_json(const std::vector<ResponseChoice>& choices,
                                const std::vector<LlamaPrompt>& prompts, const LlamaStyle& style);

// The events of a chunk, one or two: a piece of text, and the result that ends a choice.
std::vector<std::string> llama_chunk_jsons(const ResponseChunk& chunk, const LlamaPrompt& prompt,
                                           const LlamaStyle& style);

}  // namespace paceline
