// GLM-4-9B and GLM 4 of 2025 (transformers' modeling_glm and _glm4): half of each head rotates, in
// pairs of neighbours; the later one has norms behind attention and MLP, too.
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

DecoderConfig read_glm(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kGlm4Defaults);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.qkv_bias = config.boolean("attention_bias", true);
  decoder.fused_gate_up = true;
  decoder.rope_pairs = RopePairs::neighbours;
  decoder.layers = uniform_layers(read_num_layers(config), 0);
  read_ropes(config, {{.rotates_part = true, .default_share = 0.5}}, decoder);
  return decoder;
}

DecoderConfig read_glm4(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_glm(config, weights);
  decoder.norms.after_attention = "post_self_attn_layernorm";
  decoder.norms.after_mlp = "post_mlp_layernorm";
  return decoder;
}

}  // namespace paceline
