// Makes config.json and generation_config.json, as in a Hugging Face directory, from a GGUF file.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "models/gguf_architecture.h"
#include "weights/gguf_file.h"

namespace paceline {

// How norm weights are stored in architectures whose norms compute 1 + w.
enum class NormWeights {
  as_in_file,  // 1 + w; the config has kNormWeightOffsetField
  as_in_hugging_face,
};

// Sizes, ropes, windows, caps and special ids in the spelling of transformers 4. Throws Error
// "FILE: KEY: ...": corrupt for a missing or contradictory key, unsupported for an unimplemented
// one. The config's reader bounds the sizes.
Json gguf_config(const GgufFile& file, NormWeights norms = NormWeights::as_in_file);

// The ids that end a text, and the file's recommended sampling.
Json gguf_generation_config(const GgufMetadata& metadata);

// Heads of the query and of the key projections.
struct GgufHeads {
  int64_t query = 0;
  int64_t key = 0;
};
GgufHeads gguf_heads(const GgufFile& file);

// Without the layers behind them that predict further tokens.
int64_t num_gguf_layers(const GgufFile& file);

// sentence-transformers' name of the file's pooling_type (llama.cpp's enumeration); nothing: the
// file says none, or is a reranker's. Throws Error unsupported for one that isn't known.
std::optional<std::string> gguf_pooling(const GgufMetadata& metadata);

}  // namespace paceline
