// A model's weights and operations, from its configuration alone.
#pragma once

#include <cstdint>

#include "models/decoder_config.h"

namespace paceline {

struct ModelCosts {
  int64_t block_weights = 0;      // elements of the matrices of all layers
  int64_t embedding_weights = 0;  // [vocab, hidden]
  int64_t head_weights = 0;       // [vocab, hidden]; 0 when tied to the embedding

  int64_t weights() const { return block_weights + embedding_weights + head_weights; }
  // One token is multiplied by every matrix, including the head (the embedding, when tied); the
  // embedding's lookup reads one row.
  int64_t weights_per_decoded_token() const { return block_weights + embedding_weights; }
};

inline ModelCosts model_costs(const DecoderConfig& config) {
  const int64_t q = config.num_heads * config.head_dim;
  const int64_t kv = config.num_kv_heads * config.head_dim;
  const int64_t attention = config.hidden_size * (2 * q + 2 * kv);
  const int64_t mlp = 3 * config.hidden_size * config.intermediate_size;
  const int64_t embedding = config.vocab_size * config.hidden_size;
  return {.block_weights = config.num_layers() * (attention + mlp),
          .embedding_weights = embedding,
          .head_weights = config.tied_head ? 0 : embedding};
}

}  // namespace paceline
