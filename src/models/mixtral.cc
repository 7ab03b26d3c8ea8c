// Mixtral and MiniMax M2 (transformers' modeling_mixtral and _minimax_m2): Mistral's block with a
// mixture of experts. MiniMax chooses them by sigmoids and a bias, and has norms of q and k.
#include <fmt/format.h>

#include "models/family.h"
#include "models/mixture_fields.h"

namespace paceline {
namespace {

constexpr CommonDefaults kMixtralDefaults = {.num_kv_heads = 8, .max_position = 131072};
constexpr double kMixtralTheta = 1e6;
constexpr CommonDefaults kMiniMaxDefaults = {.vocab_size = 200064,
                                             .num_heads = 48,
                                             .num_kv_heads = 8,
                                             .head_dim = 128,
                                             .max_position = 196608};

}  // namespace

DecoderConfig read_mixtral(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kMixtralDefaults);
  decoder.norm_eps = static_cast<float>(config.number("rms_norm_eps", 1e-5));
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.mixture = read_mixture(
      config, {.size_key = "intermediate_size", .num_experts = 8, .experts_per_token = 2});
  decoder.mixture->routing.normalise = true;
  decoder.mixture->names = mixtral_names(weights);
  const auto window = config.has("sliding_window") ? config.integer("sliding_window") : 0;
  decoder.layers = uniform_layers(read_num_layers(config), window);
  mix_all_layers(decoder.layers);
  read_ropes(config, {{.default_theta = kMixtralTheta}}, decoder);
  return decoder;
}

// The published files say rotary_dim where others have partial_rotary_factor.
DecoderConfig read_minimax_m2(const HfConfig& config, const WeightReader& weights) {
  constexpr double kTheta = 5e6;
  DecoderConfig decoder = read_common(config, weights, kMiniMaxDefaults);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.qk_norm = QkNorm::width;
  decoder.mixture = read_mixture(
      config, {.size_key = "intermediate_size", .num_experts = 256, .experts_per_token = 8});
  decoder.mixture->routing.score = ExpertScore::sigmoid;
  decoder.mixture->routing.normalise = true;
  decoder.mixture->has_choice_bias = true;
  decoder.mixture->names = mixtral_names(weights);
  decoder.layers = uniform_layers(read_num_layers(config), 0);
  mix_all_layers(decoder.layers);
  const int64_t rotary_dim = config.integer("rotary_dim", decoder.head_dim);
  if (rotary_dim > decoder.head_dim) {
    config.invalid("rotary_dim",
                   fmt::format("{}, expected at most head_dim {}", rotary_dim, decoder.head_dim));
  }
  const double share = static_cast<double>(rotary_dim) / static_cast<double>(decoder.head_dim);
  read_ropes(config, {{.default_theta = kTheta, .rotates_part = true, .default_share = share}},
             decoder);
  return decoder;
}

}  // namespace paceline
