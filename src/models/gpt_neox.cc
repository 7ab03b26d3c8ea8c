// GPT-NeoX and Pythia (transformers' modeling_gpt_neox): attention and MLP side by side, each
// behind a layer norm of its own; queries, keys and values of each head in turn in one matrix, an
// MLP without a gate; a quarter of each head rotates. Persimmon (modeling_persimmon): the same one
// after the other, with norms of each head of q and k; half of each head rotates.
#include "models/family.h"

namespace paceline {
namespace {

constexpr CommonDefaults kNeoXDefaults = {.vocab_size = 50432,
                                          .num_heads = 64,
                                          .intermediate_size = 24576,
                                          .norm_eps_key = "layer_norm_eps",
                                          .norm_eps = 1e-5,
                                          .hidden_size = 6144,
                                          .names = {.num_kv_heads = "", .head_dim = ""}};

constexpr CommonDefaults kPersimmonDefaults = {.vocab_size = 262144,
                                               .num_heads = 64,
                                               .intermediate_size = 16384,
                                               .max_position = 16384,
                                               .norm_eps_key = "layer_norm_eps",
                                               .norm_eps = 1e-5,
                                               .hidden_size = 4096,
                                               .names = {.num_kv_heads = "", .head_dim = ""}};

DecoderConfig read_any_neox(const HfConfig& config, const WeightReader& weights,
                            const CommonDefaults& defaults, std::string_view activation) {
  DecoderConfig decoder = read_common(config, weights, defaults);
  read_plain_mlp(config, "hidden_act", activation, decoder);
  decoder.mlp_bias = true;
  decoder.mlp_names.up = "dense_h_to_4h";
  decoder.mlp_names.down = "dense_4h_to_h";
  decoder.fused_qkv = true;
  use_layer_norms(decoder);
  return decoder;
}

}  // namespace

DecoderConfig read_gpt_neox(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_any_neox(config, weights, kNeoXDefaults, "gelu");
  decoder.qkv_bias = decoder.output_bias = config.boolean("attention_bias", true);
  decoder.grouped_qkv = !config.boolean(kJoinedHeadsField, false);
  decoder.attention_names = {.layer = "attention", .qkv = "query_key_value", .output = "dense"};
  decoder.parallel_block = config.boolean("use_parallel_residual", true);
  decoder.final_norm = "final_layer_norm";
  decoder.layers = uniform_layers(read_num_layers(config), 0);
  read_ropes(config,
             {{.theta_key = "rotary_emb_base",
               .share_key = "rotary_pct",
               .rotates_part = true,
               .default_share = 0.25}},
             decoder);
  return decoder;
}

DecoderConfig read_persimmon(const HfConfig& config, const WeightReader& weights) {
  constexpr int64_t kLayers = 36;
  DecoderConfig decoder = read_any_neox(config, weights, kPersimmonDefaults, "relu2");
  decoder.qkv_bias = decoder.output_bias = true;
  decoder.grouped_qkv = true;
  decoder.attention_names = {.qkv = "query_key_value",
                             .output = "dense",
                             .q_norm = "q_layernorm",
                             .k_norm = "k_layernorm"};
  if (config.boolean("qk_layernorm", true)) {
    decoder.qk_norm = QkNorm::head;
    decoder.qk_norm_bias = true;
  }
  decoder.final_norm = "final_layernorm";
  decoder.layers = uniform_layers(config.integer("num_hidden_layers", kLayers), 0);
  read_ropes(config, {{.rotates_part = true, .default_share = 0.5}}, decoder);
  return decoder;
}

}  // namespace paceline
