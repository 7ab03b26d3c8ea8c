// Phi 1, 1.5 and 2 (transformers' modeling_phi): attention and MLP side by side behind one layer
// norm, an MLP without a gate, biases everywhere, that of the head too; half of each head rotates.
#include "models/family.h"

namespace paceline {
namespace {

constexpr CommonDefaults kPhiDefaults = {.vocab_size = 51200,
                                         .num_heads = 32,
                                         .intermediate_size = 8192,
                                         .norm_eps_key = "layer_norm_eps",
                                         .norm_eps = 1e-5};

}  // namespace

DecoderConfig read_phi(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kPhiDefaults);
  read_plain_mlp(config, "hidden_act", "gelu_new", decoder);
  decoder.mlp_names.up = "fc1";
  decoder.mlp_names.down = "fc2";
  decoder.qkv_bias = decoder.output_bias = decoder.mlp_bias = decoder.head_bias = true;
  decoder.attention_names.output = "dense";
  if (config.boolean("qk_layernorm", false)) {
    decoder.qk_norm = QkNorm::head;
    decoder.qk_norm_bias = true;
    decoder.attention_names.q_norm = "q_layernorm";
    decoder.attention_names.k_norm = "k_layernorm";
  }
  use_layer_norms(decoder);
  decoder.norms.before_mlp.clear();
  decoder.parallel_block = true;
  decoder.final_norm = "final_layernorm";
  decoder.layers = uniform_layers(read_num_layers(config), 0);
  read_ropes(config, {{.rotates_part = true, .default_share = 0.5}}, decoder);
  return decoder;
}

}  // namespace paceline
