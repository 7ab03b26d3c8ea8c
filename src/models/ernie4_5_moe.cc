// ERNIE 4.5 with mixtures of experts (transformers' modeling_ernie4_5_moe): ERNIE's block; a bias
// chooses among softmax scores, and shared experts stand beside the chosen ones.
#include <fmt/format.h>

#include <string>

#include "models/family.h"
#include "models/mixture_fields.h"

namespace paceline {
namespace {

constexpr CommonDefaults kErnieMoeDefaults = {.vocab_size = 103424,
                                              .num_heads = 20,
                                              .num_kv_heads = 4,
                                              .max_position = 131072,
                                              .tied_head = true,
                                              .norm_eps = 1e-5};

// That of published files, or of those that transformers 5 writes.
std::string name_of_choice_bias(const WeightReader& weights, int64_t num_layers) {
  const std::string later = "mlp.gate.moe_statics.e_score_correction_bias";
  for (int64_t i = 0; i < num_layers; ++i) {
    if (weights.contains(fmt::format("layers.{}.{}", i, later))) return later;
  }
  return "mlp.moe_statics.e_score_correction_bias";
}

MixtureConfig read_ernie_mixture(const HfConfig& config, const WeightReader& weights,
                                 int64_t num_layers) {
  constexpr double kSmallestSum = 1e-12, kLargestSum = 1e-6;
  MixtureConfig mixture = read_mixture(config, {.experts_key = "moe_num_experts",
                                                .chosen_key = "moe_k",
                                                .num_experts = 64,
                                                .experts_per_token = 6,
                                                .expert_size = 1536});
  mixture.routing.normalise = true;
  if (config.number("moe_norm_min", kSmallestSum) > kLargestSum) {
    config.unsupported("moe_norm_min", "more than 1e-6 isn't supported");
  }
  mixture.has_choice_bias = true;
  mixture.names.choice_bias = name_of_choice_bias(weights, num_layers);
  const int64_t num_shared = config.integer("moe_num_shared_experts", 2);
  if (num_shared > 0) {
    mixture.routing.shared = SharedExpert::plain;
    mixture.shared_size = num_shared * mixture.expert_size;
    mixture.names.shared = "mlp.shared_experts";
  }
  return mixture;
}

// Every moe_layer_interval-th layer from moe_layer_start_index to moe_layer_end_index.
void mix_ernie_layers(const HfConfig& config, std::vector<LayerConfig>& layers) {
  const int64_t step = config.integer("moe_layer_interval", 1);
  const int64_t first = config.integer("moe_layer_start_index", 1);
  const int64_t last = config.integer("moe_layer_end_index", -1);
  for (int64_t i = first; i < std::ssize(layers) && (last < 0 || i <= last); ++i) {
    layers[static_cast<size_t>(i)].is_mixture = (i + 1) % step == 0;
  }
}

}  // namespace

DecoderConfig read_ernie4_5_moe(const HfConfig& config, const WeightReader& weights) {
  constexpr double kTheta = 500000.0;
  DecoderConfig decoder = read_common(config, weights, kErnieMoeDefaults);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  if (config.boolean("use_bias", false)) {
    config.unsupported("use_bias", "true isn't supported beside mixtures of experts");
  }
  decoder.rope_pairs = RopePairs::neighbours;
  decoder.layers = uniform_layers(read_num_layers(config), 0);
  decoder.mixture = read_ernie_mixture(config, weights, decoder.num_layers());
  mix_ernie_layers(config, decoder.layers);
  read_ropes(config, {{.default_theta = kTheta}}, decoder);
  return decoder;
}

}  // namespace paceline
