// The answer of POST /generate, an extension of Paceline: one prompt, one text, without the API's
// wrapping.
#pragma once

#include <string>

#include "protocol/completion_request.h"
#include "protocol/response.h"
#include "protocol/response_chunk.h"

namespace paceline {

constexpr std::string_view kGenerateIdPrefix = "gen-";

// Takes the fields of a completion, except a list of prompts and n above 1. The answer always has
// token ids.
CompletionRequest parse_generate_request(const Json& body, const RequestTerms& terms = {});

FieldList generate_request_fields();

// {"id", "model", "text", "token_ids", "logprobs", "finish_reason", "stop_reason", "seed", "usage"}
std::string generate_response_json(const ResponseHead& head, const ResponseChoice& choice,
                                   const ResponseUsage& usage, const ChunkStyle& style);

// {"id", "text", "token_ids", "logprobs", "finish_reason"}, with stop_reason and seed in the last
// one; "logprobs" when they were asked for, "usage" when every chunk has it.
std::string generate_chunk_json(const ResponseHead& head, const ResponseChunk& chunk,
                                const ChunkStyle& style);

}  // namespace paceline
