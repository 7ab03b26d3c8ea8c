// MPT (transformers' modeling_mpt; the models' own code obeys alibi_bias_max, too): ALiBi, layer
// norms and projections without biases, an MLP without a gate; queries, keys and values in one
// matrix, clipped where the config says so.
#include <cmath>

#include "models/family.h"

namespace paceline {
namespace {

constexpr CommonDefaults kMptDefaults = {.vocab_size = 50368,
                                         .num_heads = 16,
                                         .inner_factor = 4,
                                         .tied_head = true,
                                         .norm_eps_key = "layer_norm_epsilon",
                                         .norm_eps = 1e-5,
                                         .hidden_size = 2048,
                                         .names = {.hidden_size = "d_model",
                                                   .num_heads = "n_heads",
                                                   .num_kv_heads = "",
                                                   .head_dim = "",
                                                   .max_position = "max_seq_len"}};

void check_attention(const HfConfig& attention) {
  if (attention.string("attn_type", "multihead_attention") != "multihead_attention") {
    attention.unsupported("attn_type", "only multihead_attention is supported");
  }
  if (!attention.boolean("alibi", true)) {
    attention.unsupported("alibi", "false isn't supported: the family's positions are ALiBi");
  }
  for (const std::string_view key : {"prefix_lm", "qk_ln", "attn_uses_sequence_id"}) {
    if (attention.boolean(key, false)) attention.unsupported(key, "true isn't supported");
  }
}

void read_attention(const HfConfig& attention, DecoderConfig& decoder) {
  check_attention(attention);
  decoder.clip_qkv = read_clip(attention);
  if (attention.has("softmax_scale")) {
    decoder.attention_scale = static_cast<float>(attention.number("softmax_scale"));
  }
  use_alibi(DistanceScoreKind::linear, decoder);
  decoder.distance_scores->steepness = attention.number("alibi_bias_max", 8.0);
}

}  // namespace

DecoderConfig read_mpt(const HfConfig& config, const WeightReader& weights) {
  constexpr int64_t kLayers = 24;
  DecoderConfig decoder = read_common(config, weights, kMptDefaults);
  decoder.intermediate_size = decoder.hidden_size * config.integer("expansion_ratio", 4);
  decoder.activation = Activation::gelu_erf;
  decoder.gated_mlp = false;
  decoder.mlp = "ffn";
  decoder.fused_qkv = true;
  decoder.attention_names = {.layer = "attn", .qkv = "Wqkv", .output = "out_proj"};
  decoder.norm_kind = NormKind::layer;
  decoder.norms = {.before_attention = "norm_1", .before_mlp = "norm_2"};
  decoder.final_norm = "norm_f";
  if (config.has("logit_scale")) {
    config.unsupported("logit_scale", "isn't supported in this family; null is");
  }
  decoder.layers = uniform_layers(config.integer("n_layers", kLayers), 0);
  if (const auto attention = config.find("attn_config")) {
    read_attention(HfConfig(*attention), decoder);
  } else {
    use_alibi(DistanceScoreKind::linear, decoder);
  }
  return decoder;
}

}  // namespace paceline
