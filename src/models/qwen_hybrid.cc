// Qwen 3.5 and 3.6, dense and mixtures (transformers' modeling_qwen3_5 and _qwen3_5_moe): gated
// delta nets, and every fourth layer attention whose output is gated. Vision towers and layers for
// prediction of several tokens are left out.
#include <fmt/format.h>

#include <cmath>

#include "models/family.h"
#include "models/mixture_fields.h"

namespace paceline {
namespace {

constexpr CommonDefaults kDenseDefaults = {.vocab_size = 248320,
                                           .num_heads = 16,
                                           .num_kv_heads = 4,
                                           .head_dim = 256,
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

DeltaNetConfig read_delta_net(const HfConfig& config) {
  const DeltaNetConfig delta{.key_heads = config.integer("linear_num_key_heads", 16),
                             .value_heads = config.integer("linear_num_value_heads", 32),
                             .key_dim = config.integer("linear_key_head_dim", 128),
                             .value_dim = config.integer("linear_value_head_dim", 128),
                             .taps = config.integer("linear_conv_kernel_dim", 4)};
  if (delta.value_heads % delta.key_heads != 0) {
    config.invalid("linear_num_value_heads", fmt::format("{} isn't a multiple of the {} key heads",
                                                         delta.value_heads, delta.key_heads));
  }
  return delta;
}

DecoderConfig read_hybrid(const HfConfig& config, const WeightReader& weights,
                          const CommonDefaults& defaults) {
  constexpr double kRotatedShare = 0.25;
  DecoderConfig decoder = read_common(config, weights, defaults);
  decoder.head_dim = config.integer("head_dim", defaults.head_dim);
  decoder.attention_scale = 1.0f / std::sqrt(static_cast<float>(decoder.head_dim));
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.norm_weight_offset =
      static_cast<float>(config.number(kNormWeightOffsetField, 1.0));  // files have w of 1 + w
  decoder.qk_norm = QkNorm::head;
  decoder.attention_gate = true;
  decoder.qkv_bias = config.boolean("attention_bias", false);
  decoder.output_bias = decoder.qkv_bias;
  decoder.layers = read_hybrid_layers(config);
  decoder.delta_net = read_delta_net(config);
  read_ropes(config, {{.rotates_part = true, .default_share = kRotatedShare}}, decoder);
  return decoder;
}

}  // namespace

DecoderConfig read_qwen3_5(const HfConfig& config, const WeightReader& weights) {
  return read_hybrid(config, weights, kDenseDefaults);
}

DecoderConfig read_qwen3_5_moe(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_hybrid(config, weights, kMixtureDefaults);
  decoder.mixture =
      read_mixture(config, {.num_experts = 256, .experts_per_token = 8, .expert_size = 512});
  decoder.mixture->routing.normalise = true;
  decoder.mixture->routing.shared = SharedExpert::gated;
  decoder.mixture->shared_size = config.integer("shared_expert_intermediate_size", 512);
  mix_all_layers(decoder.layers);
  return decoder;
}

}  // namespace paceline
