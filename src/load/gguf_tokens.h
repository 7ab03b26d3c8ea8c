// The tokens that a GGUF's metadata lists, and the ids that it names.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "weights/gguf_metadata.h"

namespace paceline {

// With the numbers of the file format (gguf-py's TokenType, after sentencepiece's).
enum class GgufTokenType : uint8_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6,
};

struct GgufTokens {
  std::vector<std::string_view> texts;  // by id; views of the file
  std::vector<GgufTokenType> types;     // by id; all normal when the file has no types

  size_t size() const { return texts.size(); }
};

// Texts are well-formed UTF-8; normal tokens with a name (bos, eos, ...) become control tokens.
// Throws Error corrupt "FILE: KEY: ..." for lists of different lengths and unknown types, exhausted
// for more tokens than a tokenizer may have.
GgufTokens read_gguf_tokens(const GgufMetadata& metadata);

// tokenizer.ggml.NAME_token_id: "bos", "eos", "eot", "eom", "unknown", "padding". Nothing when the
// file has none, or writes -1 for none.
std::optional<int64_t> gguf_token_id(const GgufMetadata& metadata, std::string_view name);

}  // namespace paceline
