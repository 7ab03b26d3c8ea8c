// Qwen3-Next, and Qwen 3.5 and 3.6, dense and mixtures (transformers' modeling_qwen3_next,
// _qwen3_5 and _qwen3_5_moe): gated delta nets, and every fourth layer attention whose output is
// gated. Vision towers and layers for prediction of several tokens are left out.
#include <fmt/format.h>

#include <cmath>

#include "models/delta_net_fields.h"
#include "models/family.h"
#include "models/mixture_fields.h"

namespace paceline {
namespace {

constexpr CommonDefaults kDenseDefaults = {.vocab_size = 248320,
                                           .num_heads = 16,
                                           .num_kv_heads = 4,
                                           .head_dim = 256,
                                           .max_position = 32768};
constexpr CommonDefaults kNextDefaults = {.vocab_size = 151936,
                                          .num_heads = 16,
                                          .num_kv_heads = 2,
                                          .head_dim = 256,
                                          .intermediate_size = 5632,
                                          .max_position = 32768};
constexpr CommonDefaults kMixtureDefaults = {.vocab_size = 248320,
                                             .num_heads = 16,
                                             .num_kv_heads = 2,
                                             .head_dim = 256,
                                             .intermediate_size = 0,
                                             .max_position = 32768};

std::vector<LayerConfig> read_hybrid_layers(const HfConfig& config) {
  std::vector<LayerConfig> layers = uniform_layers(read_num_layers(config), 0);
  if (read_mixers(config, {.name = "linear_attention", .kind = MixerKind::delta_net}, layers))
    return layers;
  const auto interval = static_cast<size_t>(config.integer("full_attention_interval", 4));
  for (size_t i = 0; i < layers.size(); ++i) {
    if ((i + 1) % interval != 0) layers[i].mixer = MixerKind::delta_net;
  }
  return layers;
}

// What is added to the norms' weights. Files have w of 1 + w, but those of mlx_lm.convert the sums.
// The place of a convolution's taps tells the two layouts apart, as in mlx-lm's Model.sanitize.
double norm_offset(const WeightReader& weights, const std::vector<LayerConfig>& layers) {
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].mixer != MixerKind::delta_net) continue;
    const auto taps = weights.shape_of(fmt::format("layers.{}.linear_attn.conv1d.weight", i));
    return taps && taps->rank() == 3 && (*taps)[2] == 1 ? 0.0 : 1.0;
  }
  return 1.0;
}

DecoderConfig read_hybrid(const HfConfig& config, const WeightReader& weights,
                          const CommonDefaults& defaults) {
  constexpr double kRotatedShare = 0.25;
  DecoderConfig decoder = read_common(config, weights, defaults);
  decoder.head_dim = config.integer("head_dim", defaults.head_dim);
  decoder.attention_scale = 1.0f / std::sqrt(static_cast<float>(decoder.head_dim));
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.qk_norm = QkNorm::head;
  decoder.attention_gate = true;
  decoder.qkv_bias = config.boolean("attention_bias", false);
  decoder.output_bias = decoder.qkv_bias;
  decoder.layers = read_hybrid_layers(config);
  decoder.norm_weight_offset = static_cast<float>(
      config.number(kNormWeightOffsetField, norm_offset(weights, decoder.layers)));
  decoder.delta_net = read_delta_net(config);
  decoder.delta_net->activation = decoder.activation;
  read_ropes(config, {{.rotates_part = true, .default_share = kRotatedShare}}, decoder);
  return decoder;
}

DecoderConfig read_hybrid_mixture(const HfConfig& config, const WeightReader& weights,
                                  const CommonDefaults& defaults, const MixtureDefaults& mixture) {
  DecoderConfig decoder = read_hybrid(config, weights, defaults);
  decoder.mixture = read_mixture(config, mixture);
  decoder.mixture->routing.normalise = true;
  decoder.mixture->routing.shared = SharedExpert::gated;
  decoder.mixture->shared_size = config.integer("shared_expert_intermediate_size", 512);
  return decoder;
}

// GGUF files have the product for queries to gates in two parts.
DeltaProjections find_projections(const WeightReader& weights,
                                  const std::vector<LayerConfig>& layers) {
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto name = fmt::format("layers.{}.linear_attn.in_proj_qkv", i);
    const bool is_in_parts = weights.contains(name + ".weight");
    if (is_in_parts && !weights.contains(name + "z.weight")) return DeltaProjections::as_in_gguf;
  }
  return DeltaProjections::by_key_head;
}

}  // namespace

DecoderConfig read_qwen3_next(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder =
      read_hybrid_mixture(config, weights, kNextDefaults,
                          {.num_experts = 512, .experts_per_token = 10, .expert_size = 512});
  decoder.mixture->routing.normalise = config.boolean("norm_topk_prob", true);
  decoder.delta_net->projections = find_projections(weights, decoder.layers);
  mix_sparse_layers(config, decoder.layers);
  return decoder;
}

DecoderConfig read_qwen3_5(const HfConfig& config, const WeightReader& weights) {
  return read_hybrid(config, weights, kDenseDefaults);
}

DecoderConfig read_qwen3_5_moe(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder =
      read_hybrid_mixture(config, weights, kMixtureDefaults,
                          {.num_experts = 256, .experts_per_token = 8, .expert_size = 512});
  mix_all_layers(decoder.layers);
  return decoder;
}

}  // namespace paceline
