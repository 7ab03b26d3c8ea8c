// Falcon (transformers' modeling_falcon): layer norms, an MLP without a gate; queries, keys and
// values in one matrix. In 7B attention and MLP stand side by side behind one norm, with one head
// of keys and values; the later ones (new_decoder_architecture) have groups of heads, and mostly a
// norm for each branch. RW has ALiBi instead of rotations, and its blocks one branch behind the
// other.
#include "models/family.h"

namespace paceline {
namespace {

constexpr CommonDefaults kEarlyFalconDefaults = {
    .vocab_size = 65024,
    .num_heads = 71,
    .inner_factor = 4,
    .tied_head = true,
    .norm_eps_key = "layer_norm_epsilon",
    .norm_eps = 1e-5,
    .hidden_size = 4544,
    .names = {
        .intermediate_size = "ffn_hidden_size", .num_kv_heads = "num_kv_heads", .head_dim = ""}};

void set_heads(const HfConfig& config, bool is_new, DecoderConfig& decoder) {
  decoder.grouped_qkv = !config.boolean(kJoinedHeadsField, false);
  if (is_new) return;
  const bool has_one_head = config.boolean("multi_query", true);
  decoder.num_kv_heads = has_one_head ? 1 : decoder.num_heads;
}

void set_norms(const HfConfig& config, bool is_new, DecoderConfig& decoder) {
  const bool is_parallel = config.boolean("parallel_attn", true);
  decoder.parallel_block = is_new || is_parallel;
  if (is_new && !is_parallel) {
    config.unsupported("parallel_attn", "false isn't supported beside new_decoder_architecture");
  }
  if (is_new && config.integer("num_ln_in_parallel_attn", 2) == 2) {
    // GGUF files have one name for the MLP's norm and for the only one.
    decoder.norms = {.before_attention = "ln_attn",
                     .before_mlp = decoder.grouped_qkv ? "ln_mlp" : "input_layernorm"};
  } else if (decoder.parallel_block) {
    decoder.norms.before_mlp.clear();
  }
}

}  // namespace

DecoderConfig read_falcon(const HfConfig& config, const WeightReader& weights) {
  constexpr int64_t kLayers = 32;
  DecoderConfig decoder = read_common(config, weights, kEarlyFalconDefaults);
  const bool is_new = config.boolean("new_decoder_architecture", false);
  read_plain_mlp(config, "activation", "gelu", decoder);
  decoder.mlp_names.up = "dense_h_to_4h";
  decoder.mlp_names.down = "dense_4h_to_h";
  decoder.fused_qkv = true;
  decoder.attention_names = {
      .layer = "self_attention", .qkv = "query_key_value", .output = "dense"};
  const bool has_biases = config.boolean("bias", false);
  decoder.qkv_bias = decoder.output_bias = decoder.mlp_bias = has_biases;
  set_heads(config, is_new, decoder);
  use_layer_norms(decoder);
  set_norms(config, is_new, decoder);
  decoder.final_norm = "ln_f";
  decoder.layers = uniform_layers(config.integer("num_hidden_layers", kLayers), 0);
  if (config.boolean("alibi", false)) {
    use_alibi(DistanceScoreKind::rounded_positions, decoder);
    decoder.distance_scores->scale = 1.0f;  // they are scaled with the products
  } else {
    read_ropes(config, {{}}, decoder);
  }
  return decoder;
}

}  // namespace paceline
