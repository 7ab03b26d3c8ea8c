// What POST /completion and POST /infill answer, in the format of llama.cpp's server.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request.h"
#include "protocol/llama_request.h"
#include "protocol/response.h"
#include "protocol/response_chunk.h"

namespace paceline {

// A prompt as the engine has it, for the results of its choices.
struct LlamaPrompt {
  std::string text;           // with the special tokens that were added
  std::string settings_json;  // llama_settings_json() of its request
};

// What is the same in all results of a request.
struct LlamaStyle {
  std::string model;
  int64_t context = 0;          // tokens of a prompt and its text together, at most
  bool returns_tokens = false;  // of a whole result; the events of a stream always have them
  bool has_probabilities = false;
  TokenNaming naming = TokenNaming::text;
};

// The object "generation_settings": the options in use, and those that are switched off.
std::string llama_settings_json(const GenerateRequest& request, const CompletionRequest& fields,
                                const LlamaStyle& style);

// One choice's result; of several, an array of them.
std::string llama_response_json(const std::vector<ResponseChoice>& choices,
                                const std::vector<LlamaPrompt>& prompts, const LlamaStyle& style);

// The events of a chunk, one or two: a piece of text, and the result that ends a choice.
std::vector<std::string> llama_chunk_jsons(const ResponseChunk& chunk, const LlamaPrompt& prompt,
                                           const LlamaStyle& style);

}  // namespace paceline
