// Llama 2 and 3 (transformers' modeling_llama): the plain pre-norm decoder.
#include "models/family.h"

namespace paceline {

DecoderConfig read_llama(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.qkv_bias = config.boolean("attention_bias", false);
  decoder.output_bias = decoder.qkv_bias;
  decoder.mlp_bias = config.boolean("mlp_bias", false);
  decoder.layers = uniform_layers(read_num_layers(config), 0);
  read_ropes(config, {{}}, decoder);
  return decoder;
}

}  // namespace paceline
