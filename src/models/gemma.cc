// Gemma 1, 2 and 3 (transformers' modeling_gemma, _gemma2, _gemma3): norms of (1 + w); the later
// two have four in a block, and windowed layers. VaultGemma (modeling_vaultgemma).
#include <cmath>

#include "models/family.h"

namespace paceline {
namespace {

constexpr CommonDefaults kGemmaDefaults = {.vocab_size = 256000,
                                           .num_heads = 16,
                                           .num_kv_heads = 16,
                                           .head_dim = 256,
                                           .max_position = 8192,
                                           .tied_head = true};
constexpr CommonDefaults kGemma2Defaults = {.vocab_size = 256000,
                                            .num_heads = 8,
                                            .num_kv_heads = 4,
                                            .head_dim = 256,
                                            .max_position = 8192,
                                            .tied_head = true};
constexpr CommonDefaults kGemma3Defaults = {.vocab_size = 262208,
                                            .num_heads = 8,
                                            .num_kv_heads = 4,
                                            .head_dim = 256,
                                            .max_position = 131072,
                                            .tied_head = true};

// Reads the common fields. Absent ones have transformers' defaults, which published configs rely
// on.
DecoderConfig read_any_gemma(const HfConfig& config, const WeightReader& weights,
                             const CommonDefaults& defaults) {
  DecoderConfig decoder = read_common(config, weights, defaults);
  decoder.norm_weight_offset = static_cast<float>(config.number(kNormWeightOffsetField, 1.0));
  decoder.embedding_scale = std::sqrt(static_cast<float>(decoder.hidden_size));
  decoder.qkv_bias = config.boolean("attention_bias", false);
  decoder.output_bias = decoder.qkv_bias;
  return decoder;
}

// The same of those with four norms in a block.
DecoderConfig read_later_gemma(const HfConfig& config, const WeightReader& weights,
                               const CommonDefaults& defaults) {
  DecoderConfig decoder = read_any_gemma(config, weights, defaults);
  // Files may have hidden_act too, which transformers' class ignores.
  decoder.activation = read_activation(config, "hidden_activation", "gelu_pytorch_tanh");
  decoder.norms = kNormsAround;
  decoder.attention_scale =
      1.0f / std::sqrt(static_cast<float>(config.number("query_pre_attn_scalar")));
  return decoder;
}

// Reads a cap; null means 0 (none).
float read_soft_cap(const HfConfig& config, std::string_view key, std::optional<double> otherwise) {
  return static_cast<float>(config.number_or_null(key, otherwise).value_or(0.0));
}

// By layer_types, else every pattern-th layer has full attention.
std::vector<LayerConfig> read_layers(const HfConfig& config, int64_t default_pattern) {
  constexpr int64_t kDefaultWindow = 4096;
  const int64_t num_layers = read_num_layers(config);
  const auto window = config.integer_or_null("sliding_window", kDefaultWindow);
  if (const auto sliding = read_sliding_layers(config, num_layers)) {
    return windowed_layers(config, *sliding, window);
  }
  const int64_t private_pattern = config.integer("_sliding_window_pattern", default_pattern);
  const int64_t pattern = config.integer("sliding_window_pattern", private_pattern);
  return windowed_layers(config, sliding_pattern(num_layers, pattern), window);
}

}  // namespace

// A hidden_act of "gelu" means the tanh approximation in this family (transformers'
// configuration_gemma).
DecoderConfig read_gemma(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_any_gemma(config, weights, kGemmaDefaults);
  decoder.activation = read_activation(config, "hidden_act", "gelu_pytorch_tanh");
  if (decoder.activation == Activation::gelu_erf) decoder.activation = Activation::gelu_tanh;
  decoder.layers = uniform_layers(read_num_layers(config), 0);
  read_ropes(config, {{}}, decoder);
  return decoder;
}

DecoderConfig read_gemma2(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_later_gemma(config, weights, kGemma2Defaults);
  decoder.attention_soft_cap = read_soft_cap(config, "attn_logit_softcapping", 50.0);
  decoder.final_soft_cap = read_soft_cap(config, "final_logit_softcapping", 30.0);
  decoder.layers = read_layers(config, 2);
  read_ropes(config, {{}}, decoder);
  return decoder;
}

// Gemma 2 without the norms behind attention and MLP.
DecoderConfig read_vaultgemma(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_gemma2(config, weights);
  decoder.norms.after_attention.clear();
  decoder.norms.after_mlp.clear();
  return decoder;
}

// transformers doesn't read attn_logit_softcapping in this family's attention.
DecoderConfig read_gemma3(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_later_gemma(config, weights, kGemma3Defaults);
  decoder.qk_norm = QkNorm::head;
  decoder.final_soft_cap = read_soft_cap(config, "final_logit_softcapping", {});
  decoder.layers = read_layers(config, 6);
  read_ropes(
      config,
      {{.default_theta = 1e6},
       {.layer_type = "sliding_attention", .theta_key = "rope_local_base_freq", .scaled = false}},
      decoder);
  for (LayerConfig& layer : decoder.layers) layer.rope_index = layer.window > 0 ? 1 : 0;
  return decoder;
}

}  // namespace paceline
