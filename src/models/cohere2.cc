// Command R and Command R7B with its kind (transformers' modeling_cohere and _cohere2): attention
// and MLP side by side behind one layer norm; neighbours rotate, in the later models in the layers
// with a window alone.
#include <cmath>

#include "models/family.h"

namespace paceline {
namespace {

constexpr int64_t kCohereWindow = 4096;
constexpr int64_t kCoherePattern = 4;  // every fourth layer has full attention
constexpr CommonDefaults kCohereDefaults = {.vocab_size = 256000,
                                            .num_heads = 64,
                                            .max_position = 8192,
                                            .tied_head = true,
                                            .norm_eps_key = "layer_norm_eps",
                                            .norm_eps = 1e-5};

DecoderConfig read_any_cohere(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kCohereDefaults);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.qkv_bias = config.boolean("attention_bias", false);
  decoder.output_bias = decoder.qkv_bias;
  decoder.norm_kind = NormKind::layer;
  decoder.norms = {.before_attention = "input_layernorm", .before_mlp = ""};
  decoder.parallel_block = true;
  decoder.rope_pairs = RopePairs::neighbours;
  decoder.logits_scale = static_cast<float>(config.number("logit_scale"));
  return decoder;
}

}  // namespace

DecoderConfig read_cohere(const HfConfig& config, const WeightReader& weights) {
  constexpr double kTheta = 5e5;
  DecoderConfig decoder = read_any_cohere(config, weights);
  if (config.boolean("use_qk_norm", false)) {  // Command R+
    decoder.qk_norm = QkNorm::each_head;
    decoder.joined_norms = true;
  }
  decoder.layers = uniform_layers(read_num_layers(config), 0);
  read_ropes(config, {{.default_theta = kTheta}}, decoder);
  return decoder;
}

DecoderConfig read_cohere2(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_any_cohere(config, weights);
  const int64_t num_layers = read_num_layers(config);
  const auto window = config.integer_or_null("sliding_window", kCohereWindow);
  const int64_t pattern = config.integer("sliding_window_pattern", kCoherePattern);
  const auto sliding = read_sliding_layers(config, num_layers);
  decoder.layers =
      windowed_layers(config, sliding.value_or(sliding_pattern(num_layers, pattern)), window);
  for (LayerConfig& layer : decoder.layers) {
    if (layer.window == 0) layer.rope_index = kNoRope;
  }
  read_ropes(config, {{}}, decoder);
  return decoder;
}

}  // namespace paceline
