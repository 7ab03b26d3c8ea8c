// Encoders with the block of BERT (Devlin et al., 2019; transformers' modeling_bert): learned
// positions, norms behind each sum, an MLP without a gate, biases everywhere. RoBERTa and XLM-R
// count positions from behind the padding's id; DistilBERT has no types of tokens and other names.
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

void check_kind(const HfConfig& config) {
  check_is_encoder(config);
  if (const std::string type = config.string("position_embedding_type", "absolute");
      type != "absolute") {
    config.unsupported("position_embedding_type", "only absolute positions are supported");
  }
}

DecoderConfig read_typed_encoder(const HfConfig& config, const WeightReader& weights,
                                 const CommonDefaults& defaults, int64_t first_position,
                                 int64_t default_types) {
  constexpr int64_t kLayers = 12;
  check_kind(config);
  DecoderConfig encoder = read_encoder(config, weights, defaults, first_position,
                                       config.integer("num_hidden_layers", kLayers));
  encoder.activation = read_activation(config, "hidden_act", "gelu");
  encoder.num_token_types = config.integer("type_vocab_size", default_types);
  return encoder;
}

}  // namespace

DecoderConfig read_bert(const HfConfig& config, const WeightReader& weights) {
  constexpr int64_t kTypes = 2;
  return read_typed_encoder(config, weights, kBertDefaults, 0, kTypes);
}

DecoderConfig read_roberta(const HfConfig& config, const WeightReader& weights) {
  constexpr int64_t kPaddingId = 1, kTypes = 2;
  const int64_t padding = config.integer("pad_token_id", kPaddingId);
  return read_typed_encoder(config, weights, kRobertaDefaults, padding + 1, kTypes);
}

DecoderConfig read_distilbert(const HfConfig& config, const WeightReader& weights) {
  constexpr int64_t kLayers = 6;
  DecoderConfig encoder =
      read_encoder(config, weights, kDistilBertDefaults, 0, config.integer("n_layers", kLayers));
  encoder.activation = read_activation(config, "activation", "gelu");
  return encoder;
}

}  // namespace paceline
