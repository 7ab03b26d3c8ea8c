// DeBERTa v2 and v3 (He et al., 2021; transformers' modeling_deberta_v2): BERT's block, with scores
// of attention that queries and keys get from embeddings of distances.
#include <algorithm>
#include <cmath>

#include "models/encoder_fields.h"

namespace paceline {
namespace {

constexpr CommonDefaults kDebertaDefaults = {.vocab_size = 128100,
                                             .num_heads = 24,
                                             .intermediate_size = 6144,
                                             .max_position = 512,
                                             .norm_eps_key = "layer_norm_eps",
                                             .norm_eps = 1e-7,
                                             .hidden_size = 1536};

// `words`: parts of a text between bars, in any case, or a list of them.
bool has_word(const HfConfig& config, std::string_view key, std::string_view word) {
  const auto field = config.find(key);
  if (!field) return false;
  if (field->is_array()) {
    return std::ranges::any_of(field->items(),
                               [&](const JsonCursor& one) { return one.string() == word; });
  }
  std::string text = field->string();
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text.find(word) != text.npos;
}

DisentangledConfig read_distances(const HfConfig& config, const DecoderConfig& encoder) {
  const int64_t relative = config.integer("max_relative_positions", -1);
  const int64_t longest = relative < 1 ? encoder.max_position : relative;
  const int64_t buckets = config.integer("position_buckets", -1);
  const bool has_buckets = buckets > 0;
  constexpr int64_t kFewestBuckets = 4;
  if (has_buckets && (buckets < kFewestBuckets || longest - 1 <= buckets / 2)) {
    config.invalid("position_buckets",
                   "expected at least 4, and half of them less than the longest distance");
  }
  return {.hidden_size = encoder.hidden_size,
          .num_heads = encoder.num_heads,
          .head_dim = encoder.head_dim,
          .reach = encoder.max_position - 1,
          .span = has_buckets ? buckets : longest,
          .log_distance = has_buckets ? longest : 0,
          .meets_queries = has_word(config, "pos_att_type", "c2p"),
          .meets_keys = has_word(config, "pos_att_type", "p2c"),
          .shares_weights = config.boolean("share_att_key", false),
          .has_norm = has_word(config, "norm_rel_ebd", "layer_norm"),
          .norm_eps = encoder.norm_eps};
}

void check_kind(const HfConfig& config, const DecoderConfig& encoder) {
  if (config.integer("conv_kernel_size", 0) > 0) {
    config.unsupported("conv_kernel_size", "a convolution behind the first block isn't supported");
  }
  if (config.integer("embedding_size", encoder.hidden_size) != encoder.hidden_size) {
    config.unsupported("embedding_size", "only hidden_size is supported");
  }
}

}  // namespace

DecoderConfig read_deberta_v2(const HfConfig& config, const WeightReader& weights) {
  constexpr int64_t kLayers = 24;
  DecoderConfig encoder = read_common(config, weights, kDebertaDefaults);
  set_encoder(encoder);
  set_norms_behind(encoder);
  check_kind(config, encoder);
  encoder.activation = read_activation(config, "hidden_act", "gelu");
  encoder.gated_mlp = false;
  encoder.qkv_bias = encoder.output_bias = encoder.mlp_bias = true;
  encoder.num_token_types = config.integer("type_vocab_size", 0);
  if (config.boolean("position_biased_input", true)) encoder.num_positions = encoder.max_position;
  encoder.layers = uniform_layers(config.integer("num_hidden_layers", kLayers), 0);
  for (LayerConfig& layer : encoder.layers) layer.rope_index = kNoRope;
  const DisentangledConfig distances = read_distances(config, encoder);
  const int parts = 1 + (distances.meets_queries ? 1 : 0) + (distances.meets_keys ? 1 : 0);
  encoder.attention_scale = 1.0f / std::sqrt(static_cast<float>(encoder.head_dim * int64_t{parts}));
  if (config.boolean("relative_attention", false) && parts > 1) encoder.disentangled = distances;
  return encoder;
}

}  // namespace paceline
