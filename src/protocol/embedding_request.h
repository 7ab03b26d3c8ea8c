// EmbeddingRequest is the body of POST /v1/embeddings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/request_fields.h"
#include "protocol/response.h"

namespace paceline {

constexpr uint64_t kMaxDimensions = 1 << 20;

enum class EmbeddingFormat : uint8_t { floats, base64 };

struct EmbeddingRequest {
  CommonFields common;
  PromptList input;
  EmbeddingFormat format = EmbeddingFormat::floats;
  std::optional<int64_t> dimensions;
  std::optional<std::string> named_prompt;  // `prompt_name`
  bool add_special_tokens = true;           // to a text
  std::optional<bool> truncates;            // a text that is too long
};

// Throws RequestError naming the first field that is wrong, unknown or not supported.
EmbeddingRequest parse_embedding_request(const Json& body, const RequestTerms& terms = {});

FieldList embedding_request_fields();

constexpr std::string_view kEmbeddingIdPrefix = "embd-";

// The bytes of an answer's embedding of `width` elements, about.
int64_t embedding_json_bytes(EmbeddingFormat format, int64_t width);

// {"id", "object": "list", "created", "model", "data": [{"object": "embedding", "index",
// "embedding"}], "usage"}; an embedding is an array of numbers, or the base64 of its elements as
// float32, the lowest byte first.
std::string embedding_response_json(const EmbeddingRequest& request, const ItemAnswer& answer);

}  // namespace paceline
