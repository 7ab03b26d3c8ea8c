#include "cli/model_costs.h"

namespace paceline {

ModelCosts model_costs(const DecoderConfig& config) {
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
