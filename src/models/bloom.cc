// BLOOM (transformers' modeling_bloom): ALiBi, a norm of the embedding, layer norms, an MLP without
// a gate, biases; queries, keys and values in one matrix, head by head.
#include "models/family.h"

namespace paceline {
namespace {

constexpr CommonDefaults kBloomDefaults = {.vocab_size = 250880,
                                           .num_heads = 8,
                                           .inner_factor = 4,
                                           .tied_head = true,
                                           .norm_eps_key = "layer_norm_epsilon",
                                           .norm_eps = 1e-5,
                                           .hidden_size = 64,
                                           .names = {.hidden_size = "n_embed",
                                                     .intermediate_size = "n_inner",
                                                     .num_heads = "n_head",
                                                     .num_kv_heads = "",
                                                     .head_dim = "",
                                                     .max_position = "seq_length",
                                                     .or_usual = true}};

}  // namespace

// transformers' class has inner columns of 4 times the hidden size whatever n_inner says, and no
// field of the context that a model was trained for, which files call seq_length.
DecoderConfig read_bloom(const HfConfig& config, const WeightReader& weights) {
  constexpr int64_t kLayers = 2;
  DecoderConfig decoder = read_common(config, weights, kBloomDefaults);
  decoder.intermediate_size = kBloomDefaults.inner_factor * decoder.hidden_size;
  decoder.activation = Activation::gelu_tanh;
  decoder.gated_mlp = false;
  decoder.mlp_names.up = "dense_h_to_4h";
  decoder.mlp_names.down = "dense_4h_to_h";
  decoder.mlp_bias = decoder.qkv_bias = decoder.output_bias = true;
  decoder.fused_qkv = true;
  decoder.grouped_qkv = !config.boolean(kJoinedHeadsField, false);
  decoder.attention_names = {
      .layer = "self_attention", .qkv = "query_key_value", .output = "dense"};
  use_layer_norms(decoder);
  decoder.embedding_norm = true;
  decoder.final_norm = "ln_f";
  const std::string_view key = config.has("n_layer") ? "n_layer" : "num_hidden_layers";
  decoder.layers = uniform_layers(config.integer(key, kLayers), 0);
  use_alibi(DistanceScoreKind::linear, decoder);
  return decoder;
}

}  // namespace paceline
