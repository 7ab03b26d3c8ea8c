// OPT (transformers' modeling_opt): layer norms, learned positions behind two unused ones, an MLP
// of relu without a gate, biases.
#include "models/family.h"

namespace paceline {
namespace {

constexpr int64_t kUnusedPositions = 2;
constexpr CommonDefaults kOptDefaults = {
    .vocab_size = 50272,
    .num_heads = 12,
    .intermediate_size = 3072,
    .tied_head = true,
    .norm_eps_key = "",
    .norm_eps = 1e-5,
    .hidden_size = 768,
    .names = {.intermediate_size = "ffn_dim", .num_kv_heads = "", .head_dim = ""}};

void check_blocks(const HfConfig& config, const DecoderConfig& decoder) {
  if (config.integer("word_embed_proj_dim", decoder.hidden_size) != decoder.hidden_size) {
    config.unsupported("word_embed_proj_dim",
                       "embeddings that are projected to hidden_size aren't supported (OPT 350M)");
  }
}

}  // namespace

DecoderConfig read_opt(const HfConfig& config, const WeightReader& weights) {
  constexpr int64_t kLayers = 12;
  DecoderConfig decoder = read_common(config, weights, kOptDefaults);
  check_blocks(config, decoder);
  read_plain_mlp(config, "activation_function", "relu", decoder);
  decoder.mlp = "";
  decoder.mlp_names.up = "fc1";
  decoder.mlp_names.down = "fc2";
  decoder.attention_names.output = "out_proj";
  const bool has_biases = config.boolean("enable_bias", true);
  decoder.qkv_bias = decoder.output_bias = decoder.mlp_bias = has_biases;
  use_layer_norms(decoder);
  decoder.norms = {.before_attention = "self_attn_layer_norm", .before_mlp = "final_layer_norm"};
  decoder.final_norm = "final_layer_norm";
  decoder.layers = uniform_layers(config.integer("num_hidden_layers", kLayers), 0);
  use_learned_positions(kUnusedPositions, decoder);
  return decoder;
}

}  // namespace paceline
