// What a Hugging Face directory would hold as config.json and generation_config.json, from a GGUF.
#pragma once

#include "base/json.h"
#include "models/gguf_architecture.h"
#include "weights/gguf_file.h"

namespace paceline {

// What norm weights hold in architectures with four norms, which compute 1 + w.
enum class NormWeights {
  as_in_file,  // 1 + w; the config has kNormWeightOffsetField
  as_in_hugging_face,
};

// Sizes, ropes, windows, caps and special ids in the spelling of transformers 4. Throws Error
// "FILE: KEY: ...": corrupt for a missing or contradictory key, unsupported for one that isn't
// implemented. The config's reader bounds the sizes.
Json gguf_config(const GgufFile& file, NormWeights norms = NormWeights::as_in_file);

// Ids that end a text, and the sampling that the file recommends.
Json gguf_generation_config(const GgufMetadata& metadata);

// Heads of the query and of the key projections.
struct GgufHeads {
  int64_t query = 0;
  int64_t key = 0;
};
GgufHeads gguf_heads(const GgufFile& file);

}  // namespace paceline
