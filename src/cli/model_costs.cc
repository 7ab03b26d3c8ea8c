#include "cli/model_costs.h"

#include <algorithm>

#include "engine/model_runner.h"

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

size_t activation_bytes(const DecoderConfig& config, int64_t max_rows) {
  const int64_t q = config.num_heads * config.head_dim;
  const int64_t kv = config.num_kv_heads * config.head_dim;
  const int64_t widest = std::max(2 * q + 2 * kv, 2 * config.intermediate_size);
  const int64_t per_row = 4 * config.hidden_size + widest +
                          static_cast<int64_t>(config.ropes.size()) * config.rotary_dim;
  const int64_t logits = RunnerLimits{}.max_logits_rows * config.vocab_size;
  return sizeof(float) * static_cast<size_t>(max_rows * per_row + logits);
}

}  // namespace paceline
