// StarCoder 2 (transformers' modeling_starcoder2): layer norms, an MLP without a gate, biases
// everywhere.
#include "models/family.h"

namespace paceline {
namespace {

constexpr CommonDefaults kStarcoder2Defaults = {.vocab_size = 49152,
                                                .num_heads = 24,
                                                .num_kv_heads = 2,
                                                .max_position = 4096,
                                                .tied_head = true,
                                                .norm_eps_key = "norm_epsilon",
                                                .norm_eps = 1e-5};

}  // namespace

DecoderConfig read_starcoder2(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kStarcoder2Defaults);
  read_plain_mlp(config, "hidden_act", "gelu_pytorch_tanh", decoder);
  const bool has_biases = config.boolean("use_bias", true);
  decoder.qkv_bias = has_biases;
  decoder.output_bias = has_biases;
  decoder.mlp_bias = has_biases;
  use_layer_norms(decoder);
  decoder.mlp_names.up = "c_fc";
  decoder.mlp_names.down = "c_proj";
  decoder.layers = uniform_layers(read_num_layers(config), read_optional_window(config));
  read_ropes(config, {{}}, decoder);
  return decoder;
}

}  // namespace paceline
