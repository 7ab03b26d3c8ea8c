// StableLM 2 (transformers' modeling_stablelm): layer norms, a quarter of each head rotates; norms
// of each head of q and k and a parallel block where the config says so.
#include "models/family.h"

namespace paceline {
namespace {

constexpr CommonDefaults kStableLmDefaults = {.vocab_size = 50304,
                                              .num_heads = 32,
                                              .num_kv_heads = 32,
                                              .max_position = 4096,
                                              .norm_eps_key = "layer_norm_eps",
                                              .norm_eps = 1e-5};

}  // namespace

DecoderConfig read_stablelm(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kStableLmDefaults);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.qkv_bias = config.boolean("use_qkv_bias", false);
  use_layer_norms(decoder);
  if (config.boolean("qk_layernorm", false)) decoder.qk_norm = QkNorm::each_head;
  decoder.attention_names.q_norm = "q_layernorm";
  decoder.attention_names.k_norm = "k_layernorm";
  decoder.parallel_block = config.boolean("use_parallel_residual", false);
  if (decoder.parallel_block) decoder.norms.before_mlp.clear();
  decoder.layers = uniform_layers(read_num_layers(config), 0);
  read_ropes(config, {{.rotates_part = true, .default_share = 0.25}}, decoder);
  return decoder;
}

}  // namespace paceline
