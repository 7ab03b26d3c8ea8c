// Llama 2 and 3 (transformers' modeling_llama): the plain pre-norm decoder.
#include "models/family.h"

namespace paceline {

DecoderConfig read_llama(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.qkv_bias = config.boolean("attention_bias", false);
  decoder.output_bias = decoder.qkv_bias;
  decoder.mlp_bias = config.boolean("mlp_bias", false);
  decoder.ropes = {read_rope(config, {})};
  decoder.layers = uniform_layers(config.integer("num_hidden_layers", {}, {1, 1024}), 0);
  return decoder;
}

}  // namespace paceline
