// A model's weights and operations, from its configuration alone.
#pragma once

#include <cmath>
#include <cstdint>

#include "models/decoder_config.h"

namespace paceline {

struct ModelCosts {
  int64_t block_weights = 0;      // elements of the matrices of all layers
  int64_t idle_weights = 0;       // those of them that a token doesn't use: experts not chosen
  int64_t embedding_weights = 0;  // [vocab, hidden]
  int64_t head_weights = 0;       // [vocab, hidden]; 0 when tied to the embedding

  int64_t num_experts = 0;  // of a mixture; 0: there is none
  int64_t experts_per_token = 0;

  // What a step of `rows` tokens reads, in multiples of what one reads, if routers choose evenly
  // and all weights have one format.
  double reading_of(double rows) const {
    if (num_experts <= experts_per_token) return 1.0;
    const auto all = static_cast<double>(num_experts),
               each = static_cast<double>(experts_per_token);
    const double chosen = all * (1.0 - std::pow(1.0 - each / all, rows));
    return 1.0 + static_cast<double>(idle_weights) * (chosen - each) / (all - each) /
                     static_cast<double>(weights_per_decoded_token());
  }

  int64_t used_block_weights() const { return block_weights - idle_weights; }
  int64_t weights() const { return block_weights + embedding_weights + head_weights; }
  // One token is multiplied by every matrix of the experts that it has and of all other parts,
  // including the head (the embedding, when tied); the embedding's lookup reads one row.
  int64_t weights_per_decoded_token() const { return used_block_weights() + embedding_weights; }
};

inline ModelCosts model_costs(const DecoderConfig& config) {
  const int64_t hidden = config.hidden_size;
  const int64_t q = config.num_heads * config.head_dim;
  const int64_t kv = config.num_kv_heads * config.head_dim;
  const int64_t embedding = config.vocab_size * hidden;
  ModelCosts costs{.embedding_weights = embedding,
                   .head_weights = config.tied_head || !config.has_head ? 0 : embedding};
  for (const LayerConfig& layer : config.layers) {
    if (layer.mixer == MixerKind::delta_net) {
      const DeltaNetConfig& delta = *config.delta_net;
      costs.block_weights += hidden * (delta.input_width() + delta.value_width());
    } else if (layer.mixer == MixerKind::convolution) {
      costs.block_weights += hidden * 4 * hidden;
    } else {
      costs.block_weights += hidden * ((config.attention_gate ? 3 : 2) * q + 2 * kv);
    }
    if (!layer.is_mixture) {
      costs.block_weights += (config.gated_mlp ? 3 : 2) * hidden * config.intermediate_size;
      continue;
    }
    const RoutingParams& routing = config.mixture->routing;
    costs.num_experts = routing.num_experts;
    costs.experts_per_token = routing.experts_per_token;
    const int64_t expert = 3 * hidden * config.mixture->expert_size;
    const bool has_shared = routing.shared != SharedExpert::none;
    costs.block_weights += hidden * routing.num_logits() + routing.num_experts * expert +
                           (has_shared ? 3 * hidden * config.mixture->shared_size : 0);
    costs.idle_weights += (routing.num_experts - routing.experts_per_token) * expert;
  }
  return costs;
}

}  // namespace paceline
