// ModernBERT (Warner et al., 2024; transformers' modeling_modernbert): norms before attention and
// MLP, a window in most layers, a rope for each kind of layer, a gated MLP, mostly no biases. What
// the first block's attention reads is the normed embedding.
#include "models/encoder_fields.h"

namespace paceline {
namespace {

constexpr CommonDefaults kModernBertDefaults = {.vocab_size = 50368,
                                                .num_heads = 12,
                                                .intermediate_size = 1152,
                                                .max_position = 8192,
                                                .norm_eps_key = "norm_eps",
                                                .norm_eps = 1e-5,
                                                .hidden_size = 768};

std::vector<bool> read_sliding(const HfConfig& config, int64_t num_layers) {
  constexpr int64_t kPattern = 3;
  if (auto listed = read_sliding_layers(config, num_layers)) return *listed;
  const int64_t pattern = config.integer("global_attn_every_n_layers", kPattern);
  std::vector<bool> sliding;
  for (int64_t i = 0; i < num_layers; ++i) sliding.push_back(i % pattern != 0);
  return sliding;
}

}  // namespace

DecoderConfig read_modernbert(const HfConfig& config, const WeightReader& weights) {
  constexpr int64_t kLayers = 22, kLocal = 128;
  DecoderConfig encoder = read_common(config, weights, kModernBertDefaults);
  set_encoder(encoder);
  encoder.norm_bias = config.boolean("norm_bias", false);
  encoder.embedding_norm = true;
  encoder.first_is_normed = false;
  encoder.activation = read_activation(config, "hidden_activation", "gelu");
  encoder.qkv_bias = encoder.output_bias = config.boolean("attention_bias", false);
  encoder.mlp_bias = config.boolean("mlp_bias", false);
  encoder.fused_qkv = encoder.fused_gate_up = true;
  // `local_attention` counts both sides; a window counts one side and the position itself.
  const int64_t window = config.integer("local_attention", kLocal) / 2 + 1;
  const auto sliding = read_sliding(config, config.integer("num_hidden_layers", kLayers));
  encoder.layers = windowed_layers(config, sliding, window);
  for (LayerConfig& layer : encoder.layers) layer.rope_index = layer.window > 0 ? 1 : 0;
  read_ropes(config,
             {{.theta_key = "global_rope_theta", .default_theta = 160000.0},
              {.layer_type = "sliding_attention", .theta_key = "local_rope_theta"}},
             encoder);
  return encoder;
}

}  // namespace paceline
