// OLMo 1 (transformers' modeling_olmo): layer norms without weights. OLMo 2 and 3 (modeling_olmo2
// and _olmo3): norms behind attention and MLP alone, and norms of q and k over their whole width.
// FlexOlmo (modeling_flex_olmo) is that with a mixture of experts.
// OLMo 3 has windows, whose layers have a rope of their own.
#include "models/family.h"
#include "models/mixture_fields.h"

namespace paceline {
namespace {

constexpr int64_t kOlmo3Window = 4096;
constexpr int64_t kOlmo3Pattern = 4;  // every fourth layer has full attention
constexpr CommonDefaults kFirstOlmoDefaults = {
    .vocab_size = 50304, .num_heads = 32, .norm_eps_key = "", .norm_eps = 1e-5};
constexpr CommonDefaults kFlexOlmoDefaults = {
    .vocab_size = 100352, .num_heads = 32, .max_position = 4096};
constexpr CommonDefaults kOlmoDefaults = {.vocab_size = 50304, .norm_eps = 1e-5};

DecoderConfig read_any_olmo(const HfConfig& config, const WeightReader& weights,
                            const CommonDefaults& defaults) {
  DecoderConfig decoder = read_common(config, weights, defaults);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.qkv_bias = config.boolean("attention_bias", false);
  decoder.output_bias = decoder.qkv_bias;
  return decoder;
}

DecoderConfig read_later_olmo(const HfConfig& config, const WeightReader& weights,
                              const CommonDefaults& defaults) {
  DecoderConfig decoder = read_any_olmo(config, weights, defaults);
  decoder.qk_norm = QkNorm::width;
  decoder.norms = kNormsBehind;
  return decoder;
}

}  // namespace

DecoderConfig read_olmo(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_any_olmo(config, weights, kFirstOlmoDefaults);
  decoder.norm_kind = NormKind::layer;
  decoder.norm_weight = false;
  decoder.clip_qkv = read_clip(config);
  decoder.layers = uniform_layers(read_num_layers(config), 0);
  read_ropes(config, {{}}, decoder);
  return decoder;
}

DecoderConfig read_flex_olmo(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_later_olmo(config, weights, kFlexOlmoDefaults);
  decoder.mixture = read_mixture(
      config, {.size_key = "intermediate_size", .num_experts = 7, .experts_per_token = 5});
  decoder.mixture->routing.normalise = config.boolean("norm_topk_prob", false);
  decoder.layers = uniform_layers(read_num_layers(config), 0);
  mix_all_layers(decoder.layers);
  read_ropes(config, {{.default_theta = 5e5}}, decoder);
  return decoder;
}

DecoderConfig read_olmo2(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_later_olmo(config, weights, kOlmoDefaults);
  decoder.layers = uniform_layers(read_num_layers(config), 0);
  read_ropes(config, {{}}, decoder);
  return decoder;
}

// transformers gives a `rope_theta` at the top level to the layers with full attention alone.
DecoderConfig read_olmo3(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_later_olmo(config, weights, kOlmoDefaults);
  const int64_t num_layers = read_num_layers(config);
  const auto window = config.integer_or_null("sliding_window", kOlmo3Window);
  const auto sliding = read_sliding_layers(config, num_layers);
  decoder.layers =
      windowed_layers(config, sliding.value_or(sliding_pattern(num_layers, kOlmo3Pattern)), window);
  read_ropes(
      config,
      {{.default_theta = 5e5},
       {.layer_type = "sliding_attention", .theta_key = "", .scaled = false, .default_theta = 5e5}},
      decoder);
  for (LayerConfig& layer : decoder.layers) layer.rope_index = layer.window > 0 ? 1 : 0;
  return decoder;
}

}  // namespace paceline
