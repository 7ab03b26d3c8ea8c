// Encoders with the block of BERT (Devlin et al., 2019; transformers' modeling_bert): learned
// positions, norms behind each sum, an MLP without a gate, biases everywhere. RoBERTa and XLM-R
// count positions from behind the padding's id; DistilBERT has no types of tokens and other names.
// MPNet and Jina's embeddings v2 have scores of attention that depend on distances.
#include "models/encoder_fields.h"

namespace paceline {
namespace {

constexpr CommonDefaults defaults_with(int64_t vocab_size) {
  return {.vocab_size = vocab_size,
          .num_heads = 12,
          .intermediate_size = 3072,
          .max_position = 512,
          .norm_eps_key = "layer_norm_eps",
          .norm_eps = 1e-12,
          .hidden_size = 768};
}
constexpr CommonDefaults kBertDefaults = defaults_with(30522);
constexpr CommonDefaults kRobertaDefaults = defaults_with(50265);
constexpr CommonDefaults kMpnetDefaults = defaults_with(30527);
constexpr CommonDefaults kDistilBertDefaults = {
    .vocab_size = 30522,
    .num_heads = 12,
    .intermediate_size = 3072,
    .max_position = 512,
    .norm_eps_key = "",
    .norm_eps = 1e-12,
    .hidden_size = 768,
    .names = {.hidden_size = "dim", .intermediate_size = "hidden_dim", .num_heads = "n_heads"}};

// `first_position`: rows of the table before the first position's.
DecoderConfig read_encoder(const HfConfig& config, const WeightReader& weights,
                           const CommonDefaults& defaults, int64_t first_position,
                           int64_t num_layers) {
  DecoderConfig encoder = read_common(config, weights, defaults);
  set_encoder(encoder);
  set_norms_behind(encoder);
  encoder.qkv_bias = encoder.output_bias = encoder.mlp_bias = true;
  encoder.gated_mlp = false;
  encoder.max_position -= first_position;
  if (encoder.max_position < 1) {
    config.invalid("max_position_embeddings", "leaves no position behind that of the padding's id");
  }
  encoder.layers = uniform_layers(num_layers, 0);
  use_learned_positions(first_position, encoder);
  return encoder;
}

void check_absolute(const HfConfig& config) {
  if (const std::string type = config.string("position_embedding_type", "absolute");
      type != "absolute") {
    config.unsupported("position_embedding_type", "only absolute positions are supported");
  }
}

// Scores by the distance of a key from its query, for texts of up to the model's positions.
DistanceScoresConfig distance_scores(const DecoderConfig& encoder, DistanceScoreKind kind) {
  return {.kind = kind,
          .num_heads = encoder.num_heads,
          .reach = encoder.max_position - 1,
          .scale = encoder.attention_scale};
}

DecoderConfig read_typed_encoder(const HfConfig& config, const WeightReader& weights,
                                 const CommonDefaults& defaults, int64_t first_position,
                                 int64_t default_types) {
  constexpr int64_t kLayers = 12;
  check_is_encoder(config);
  DecoderConfig encoder = read_encoder(config, weights, defaults, first_position,
                                       config.integer("num_hidden_layers", kLayers));
  encoder.activation = read_activation(config, "hidden_act", "gelu");
  encoder.num_token_types = config.integer("type_vocab_size", default_types);
  return encoder;
}

// Jina's embeddings v2 (Günther et al., 2023), whose model_type is BERT's, too: ALiBi in both
// directions instead of positions, and a gated MLP whose first product has no bias.
DecoderConfig read_jina(const HfConfig& config, const WeightReader& weights) {
  constexpr int64_t kTypes = 2;
  if (config.string("feed_forward_type", "original") != "geglu") {
    config.unsupported("feed_forward_type", "only geglu is supported beside alibi");
  }
  DecoderConfig encoder = read_typed_encoder(config, weights, kBertDefaults, 0, kTypes);
  encoder.num_positions = 0;
  encoder.distance_scores = distance_scores(encoder, DistanceScoreKind::linear);
  encoder.gated_mlp = encoder.fused_gate_up = true;
  encoder.mlp_bias = false;
  encoder.mlp_down_bias = true;
  return encoder;
}

}  // namespace

DecoderConfig read_bert(const HfConfig& config, const WeightReader& weights) {
  constexpr int64_t kTypes = 2;
  if (config.string("position_embedding_type", "absolute") == "alibi") {
    return read_jina(config, weights);
  }
  check_absolute(config);
  return read_typed_encoder(config, weights, kBertDefaults, 0, kTypes);
}

DecoderConfig read_roberta(const HfConfig& config, const WeightReader& weights) {
  constexpr int64_t kPaddingId = 1, kTypes = 2;
  check_absolute(config);
  const int64_t padding = config.integer("pad_token_id", kPaddingId);
  return read_typed_encoder(config, weights, kRobertaDefaults, padding + 1, kTypes);
}

// MPNet (Song et al., 2020; modeling_mpnet), which adds learned scores by distance.
DecoderConfig read_mpnet(const HfConfig& config, const WeightReader& weights) {
  constexpr int64_t kFirstPosition = 2;
  const int64_t buckets =
      config.integer("relative_attention_num_buckets", DistanceScores::kNumBuckets);
  if (buckets != DistanceScores::kNumBuckets) {
    config.unsupported("relative_attention_num_buckets", "only 32 are supported");
  }
  DecoderConfig encoder = read_typed_encoder(config, weights, kMpnetDefaults, kFirstPosition, 0);
  encoder.num_token_types = 0;
  encoder.distance_scores = distance_scores(encoder, DistanceScoreKind::buckets);
  return encoder;
}

DecoderConfig read_distilbert(const HfConfig& config, const WeightReader& weights) {
  constexpr int64_t kLayers = 6;
  DecoderConfig encoder =
      read_encoder(config, weights, kDistilBertDefaults, 0, config.integer("n_layers", kLayers));
  encoder.activation = read_activation(config, "activation", "gelu");
  return encoder;
}

}  // namespace paceline
