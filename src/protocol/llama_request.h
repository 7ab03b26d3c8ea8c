// LlamaRequest is the body of llama.cpp's POST /completion and POST /infill, in part.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "protocol/completion_request.h"

namespace paceline {

// A prompt made of text and token ids that follow one another.
using PromptPiece = std::variant<std::string, int32_t>;
using MixedPrompt = std::vector<PromptPiece>;

struct InfillFile {
  std::string filename;
  std::string text;
};

struct LlamaRequest {
  CompletionRequest completion;  // without prompts
  std::vector<MixedPrompt> prompts;
  bool returns_tokens = false;
  // For /infill.
  std::string prefix;
  std::string suffix;
  std::vector<InfillFile> files;
};

// Each throws RequestError naming the first field that is wrong, unknown or not supported.
LlamaRequest parse_llama_request(const Json& body, const RequestTerms& terms = {});
// With at most one prompt.
LlamaRequest parse_infill_request(const Json& body, const RequestTerms& terms = {});

FieldList llama_request_fields();
FieldList infill_request_fields();

}  // namespace paceline
