// Mixtral (transformers' modeling_mixtral): Mistral's block with a mixture of experts.
#include "models/family.h"
#include "models/mixture_fields.h"

namespace paceline {
namespace {

constexpr CommonDefaults kMixtralDefaults = {.num_kv_heads = 8, .max_position = 131072};
constexpr double kMixtralTheta = 1e6;

// Files of transformers call the mixture block_sparse_moe, GGUF files read as checkpoints mlp.
// mlx-lm's have another name for the experts' projections.
MixtureNames find_names(const WeightReader& weights) {
  MixtureNames names;
  if (weights.contains("layers.0.mlp.gate.weight")) return names;
  names.router = "block_sparse_moe.gate";
  names.experts = "block_sparse_moe.experts";
  const std::string gate = "layers.0." + names.experts + ".0.gate_proj.weight";
  if (!weights.contains(gate)) names.projections = {.gate = "w1", .up = "w3", .down = "w2"};
  return names;
}

}  // namespace

DecoderConfig read_mixtral(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kMixtralDefaults);
  decoder.norm_eps = static_cast<float>(config.number("rms_norm_eps", 1e-5));
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.mixture = read_mixture(
      config, {.size_key = "intermediate_size", .num_experts = 8, .experts_per_token = 2});
  decoder.mixture->routing.normalise = true;
  decoder.mixture->names = find_names(weights);
  const auto window = config.has("sliding_window") ? config.integer("sliding_window") : 0;
  decoder.layers = uniform_layers(read_num_layers(config), window);
  mix_all_layers(decoder.layers);
  read_ropes(config, {{.default_theta = kMixtralTheta}}, decoder);
  return decoder;
}

}  // namespace paceline
