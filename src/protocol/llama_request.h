// LlamaRequest is the body of llama.cpp's POST /completion and POST /infill, in part.
#pragma once

#include "protocol/completion_request.h"

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

}  // namespace paceline
