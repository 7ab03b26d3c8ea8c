// A model's weights and operations, from its configuration alone.
#pragma once

#include <cmath>
#include <cstdint>

#include "models/block_projections.h"
#include "models/decoder_config.h"

namespace paceline {

struct ModelCosts {
  int64_t block_weights = 0;      // elements of the matrices of all layers
  int64_t idle_weights = 0;       // those of them that a token doesn't use: experts not chosen
  int64_t embedding_weights = 0;  // [vocab, hidden]
  int64_t head_weights = 0;       // [vocab, hidden]; 0 when tied to the embedding
  int64_t table_weights = 0;      // of layers' inputs, of which a token reads one row

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
  int64_t weights() const {
    return block_weights + embedding_weights + head_weights + table_weights;
  }
  // One token is multiplied by every matrix of the experts that it has and of all other parts,
  // including the head (the embedding, when tied); the embedding's lookup reads one row.
  int64_t weights_per_decoded_token() const { return used_block_weights() + embedding_weights; }
};

inline ModelCosts model_costs(const DecoderConfig& config) {
  const int64_t hidden = config.hidden_size;
  const int64_t embedding = config.vocab_size * hidden;
  ModelCosts costs{.embedding_weights = embedding,
                   .head_weights = config.tied_head || !config.has_head ? 0 : embedding};
  if (config.layer_inputs) {
    const int64_t width = config.num_layers() * config.layer_inputs->width;
    costs.table_weights = config.layer_inputs->vocab_size * width;
    costs.block_weights += hidden * width;
  }
  if (config.alternating) {
    const int64_t streams = config.alternating->num_streams;
    costs.block_weights += 2 * (streams - 1) * hidden * hidden;
    costs.block_weights += config.num_layers() * streams * (hidden + streams * streams + streams);
  }
  for (int64_t i = 0; i < config.num_layers(); ++i) {
    for (const BlockProjection& part : block_projections(config, i)) {
      costs.block_weights += part.out_features * part.in_features;
    }
    const LayerConfig& layer = config.layers[static_cast<size_t>(i)];
    if (layer.mixer == MixerKind::attention && config.latent) {  // kv_b_proj
      const LatentConfig& latent = *config.latent;
      costs.block_weights += config.num_heads * (latent.nope_dim + latent.value_dim) * latent.rank;
    }
    if (!layer.is_mixture) continue;
    const RoutingParams& routing = config.mixture->routing;
    costs.num_experts = routing.num_experts;
    costs.experts_per_token = routing.experts_per_token;
    const int64_t matrices = config.mixture->gated ? 3 : 2;
    const int64_t latent = config.mixture->latent_size;
    const int64_t expert = matrices * (latent > 0 ? latent : hidden) * config.mixture->expert_size;
    const bool has_shared = routing.shared != SharedExpert::none || config.mixture->shared_apart();
    costs.block_weights += hidden * (routing.num_logits() + 2 * latent) +
                           routing.num_experts * expert +
                           (has_shared ? matrices * hidden * config.mixture->shared_size : 0);
    costs.idle_weights += (routing.num_experts - routing.experts_per_token) * expert;
  }
  return costs;
}

}  // namespace paceline
