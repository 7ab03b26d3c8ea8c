// OPT, BioGPT and XGLM (transformers' modeling_opt, _biogpt, _xglm), whose code comes from fairseq:
// layer norms, positions behind two unused ones, an MLP without a gate, biases. XGLM's positions
// are sinusoids.
#include <cmath>

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
constexpr CommonDefaults kBioGptDefaults = {.vocab_size = 42384,
                                            .num_heads = 16,
                                            .intermediate_size = 4096,
                                            .max_position = 1024,
                                            .tied_head = true,
                                            .norm_eps_key = "",  // its layer_norm_eps isn't used
                                            .norm_eps = 1e-5,
                                            .hidden_size = 1024,
                                            .names = {.num_kv_heads = "", .head_dim = ""}};
constexpr CommonDefaults kXglmDefaults = {.vocab_size = 256008,
                                          .num_heads = 16,
                                          .intermediate_size = 4096,
                                          .tied_head = true,
                                          .norm_eps_key = "",
                                          .norm_eps = 1e-5,
                                          .hidden_size = 1024,
                                          .names = {.hidden_size = "d_model",
                                                    .intermediate_size = "ffn_dim",
                                                    .num_heads = "attention_heads",
                                                    .num_kv_heads = "",
                                                    .head_dim = ""}};

void check_blocks(const HfConfig& config, const DecoderConfig& decoder) {
  if (config.integer("word_embed_proj_dim", decoder.hidden_size) != decoder.hidden_size) {
    config.unsupported("word_embed_proj_dim",
                       "embeddings that are projected to hidden_size aren't supported (OPT 350M)");
  }
}

DecoderConfig read_fairseq(const HfConfig& config, const WeightReader& weights,
                           const CommonDefaults& defaults, int64_t num_layers) {
  DecoderConfig decoder = read_common(config, weights, defaults);
  decoder.mlp = "";
  decoder.mlp_names.up = "fc1";
  decoder.mlp_names.down = "fc2";
  decoder.attention_names.output = "out_proj";
  decoder.qkv_bias = decoder.output_bias = decoder.mlp_bias = true;
  use_layer_norms(decoder);
  decoder.norms = {.before_attention = "self_attn_layer_norm", .before_mlp = "final_layer_norm"};
  decoder.layers = uniform_layers(num_layers, 0);
  use_learned_positions(kUnusedPositions, decoder);
  return decoder;
}

void scale_embedding(const HfConfig& config, DecoderConfig& decoder) {
  if (!config.boolean("scale_embedding", true)) return;
  decoder.embedding_scale = std::sqrt(static_cast<float>(decoder.hidden_size));
}

}  // namespace

DecoderConfig read_opt(const HfConfig& config, const WeightReader& weights) {
  constexpr int64_t kLayers = 12;
  DecoderConfig decoder =
      read_fairseq(config, weights, kOptDefaults, config.integer("num_hidden_layers", kLayers));
  check_blocks(config, decoder);
  read_plain_mlp(config, "activation_function", "relu", decoder);
  const bool has_biases = config.boolean("enable_bias", true);
  decoder.qkv_bias = decoder.output_bias = decoder.mlp_bias = has_biases;
  decoder.final_norm = "final_layer_norm";
  return decoder;
}

DecoderConfig read_biogpt(const HfConfig& config, const WeightReader& weights) {
  constexpr int64_t kLayers = 24;
  DecoderConfig decoder =
      read_fairseq(config, weights, kBioGptDefaults, config.integer("num_hidden_layers", kLayers));
  read_plain_mlp(config, "hidden_act", "gelu", decoder);
  decoder.final_norm = "layer_norm";
  scale_embedding(config, decoder);
  return decoder;
}

// The vector of a position whose row has the padding's id is zero.
DecoderConfig read_xglm(const HfConfig& config, const WeightReader& weights) {
  constexpr int64_t kLayers = 24, kPaddingId = 1;
  DecoderConfig decoder =
      read_fairseq(config, weights, kXglmDefaults, config.integer("num_layers", kLayers));
  read_plain_mlp(config, "activation_function", "gelu", decoder);
  decoder.final_norm = "layer_norm";
  scale_embedding(config, decoder);
  decoder.sinusoids = true;
  decoder.zero_position = config.integer_or_null("pad_token_id", kPaddingId).value_or(-1);
  return decoder;
}

}  // namespace paceline
