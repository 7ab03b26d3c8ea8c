// GLM 4 (transformers' modeling_glm4): norms before and behind attention and MLP; half of each head
// rotates, in pairs of neighbours.
#include "models/family.h"

namespace paceline {
namespace {

constexpr CommonDefaults kGlm4Defaults = {.vocab_size = 151552,
                                          .num_heads = 32,
                                          .num_kv_heads = 2,
                                          .head_dim = 128,
                                          .max_position = 131072,
                                          .norm_eps = 1.5625e-7};

}  // namespace

DecoderConfig read_glm4(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kGlm4Defaults);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.qkv_bias = config.boolean("attention_bias", true);
  decoder.fused_gate_up = true;
  decoder.rope_pairs = RopePairs::neighbours;
  decoder.norms = {.before_attention = "input_layernorm",
                   .after_attention = "post_self_attn_layernorm",
                   .before_mlp = "post_attention_layernorm",
                   .after_mlp = "post_mlp_layernorm"};
  decoder.layers = uniform_layers(read_num_layers(config), 0);
  read_ropes(config, {{.rotates_part = true, .default_share = 0.5}}, decoder);
  return decoder;
}

}  // namespace paceline
