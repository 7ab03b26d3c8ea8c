// Granite 3 (transformers' modeling_granite): Llama's block with multipliers.
#include "models/family.h"

namespace paceline {

DecoderConfig read_granite(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, {.vocab_size = 32000, .num_heads = 32});
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.qkv_bias = config.boolean("attention_bias", false);
  decoder.output_bias = decoder.qkv_bias;
  decoder.mlp_bias = config.boolean("mlp_bias", false);
  decoder.embedding_scale = static_cast<float>(config.number("embedding_multiplier"));
  decoder.attention_scale = static_cast<float>(config.number("attention_multiplier"));
  decoder.residual_scale = static_cast<float>(config.number("residual_multiplier"));
  decoder.logits_scale = static_cast<float>(1.0 / config.number("logits_scaling"));
  decoder.layers = uniform_layers(read_num_layers(config), 0);
  read_ropes(config, {{}}, decoder);
  return decoder;
}

}  // namespace paceline
