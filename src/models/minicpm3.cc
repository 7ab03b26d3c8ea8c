// MiniCPM 3 (transformers' modeling_minicpm3): multi-head latent attention in a dense block, with
// multipliers of the embedding, the residual stream and the logits.
#include <cmath>

#include "models/latent_fields.h"

namespace paceline {
namespace {

constexpr CommonDefaults kMiniCpm3Defaults = {.vocab_size = 73448,
                                              .num_heads = 40,
                                              .head_dim = 64,  // of the files' projections
                                              .intermediate_size = 6400,
                                              .max_position = 32768,
                                              .tied_head = true,
                                              .norm_eps = 1e-5};

}  // namespace

DecoderConfig read_minicpm3(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kMiniCpm3Defaults);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.mlp_bias = config.boolean("mlp_bias", false);
  decoder.layers = uniform_layers(read_num_layers(config), 0);
  read_latent_attention(config,
                        {.query_rank = 768,
                         .rank = 256,
                         .nope_dim = 64,
                         .rope_dim = 32,
                         .value_dim = {},
                         .interleaved = false,
                         .has_interleave_field = false},
                        decoder);
  decoder.embedding_scale = static_cast<float>(config.number("scale_emb"));
  const double layers_root = std::sqrt(static_cast<double>(decoder.num_layers()));
  const double depth = config.number_or_null("scale_depth", 1.4).value_or(layers_root);
  decoder.residual_scale = static_cast<float>(depth / layers_root);
  const int64_t base = config.integer_or_null("dim_model_base", 256).value_or(decoder.hidden_size);
  decoder.logits_scale =
      static_cast<float>(static_cast<double>(base) / static_cast<double>(decoder.hidden_size));
  return decoder;
}

}  // namespace paceline
