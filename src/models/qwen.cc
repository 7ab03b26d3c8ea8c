// Qwen 2 (bias on q, k and v) and Qwen 3 (q and k norms), transformers' modeling_qwen2 and _qwen3;
// the text models of Qwen 2-VL, 2.5-VL and 3-VL. A token of text has one position in all three
// dimensions of their ropes, so that the sections of these change nothing.
#include "models/family.h"

namespace paceline {
namespace {

constexpr int64_t kQwenWindow = 4096;
constexpr CommonDefaults kQwen2Defaults = {.num_kv_heads = 32, .max_position = 32768};
constexpr CommonDefaults kQwen3Defaults = {
    .num_kv_heads = 32, .head_dim = 128, .max_position = 32768};
constexpr CommonDefaults kQwen2VlDefaults = {.vocab_size = 152064,
                                             .num_heads = 64,
                                             .num_kv_heads = 8,
                                             .max_position = 32768,
                                             .norm_eps = 1e-5};
constexpr CommonDefaults kQwen3VlDefaults = {.vocab_size = 151936,
                                             .num_heads = 32,
                                             .num_kv_heads = 32,
                                             .head_dim = 128,
                                             .max_position = 128000};

// With use_sliding_window and a window, the layers from max_window_layers on have it, unless
// layer_types lists them.
std::vector<LayerConfig> read_layers(const HfConfig& config) {
  const int64_t num_layers = read_num_layers(config);
  std::optional<int64_t> window = config.integer_or_null("sliding_window", kQwenWindow);
  if (!config.boolean("use_sliding_window", false)) window.reset();
  if (const auto sliding = read_sliding_layers(config, num_layers)) {
    return windowed_layers(config, *sliding, window);
  }
  const int64_t first = config.integer("max_window_layers");
  std::vector<LayerConfig> layers = uniform_layers(num_layers, 0);
  for (int64_t i = first; window && i < num_layers; ++i) {
    layers[static_cast<size_t>(i)].window = *window;
  }
  return layers;
}

DecoderConfig read_qwen(const HfConfig& config, const WeightReader& weights,
                        const CommonDefaults& defaults, const RopeFields& rope = {}) {
  DecoderConfig decoder = read_common(config, weights, defaults);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.layers = read_layers(config);
  read_ropes(config, {rope}, decoder);
  return decoder;
}

}  // namespace

DecoderConfig read_qwen2(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_qwen(config, weights, kQwen2Defaults);
  decoder.qkv_bias = true;
  return decoder;
}

DecoderConfig read_qwen3(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_qwen(config, weights, kQwen3Defaults);
  decoder.qk_norm = QkNorm::head;
  decoder.qkv_bias = config.boolean("attention_bias", false);
  decoder.output_bias = decoder.qkv_bias;
  return decoder;
}

DecoderConfig read_qwen2_vl(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_qwen(config, weights, kQwen2VlDefaults,
                                    {.default_theta = 1e6, .may_be_of_images = true});
  decoder.qkv_bias = true;
  return decoder;
}

// No layer has a window, whatever its fields say.
DecoderConfig read_qwen3_vl(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kQwen3VlDefaults);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.layers = uniform_layers(read_num_layers(config), 0);
  read_ropes(config, {{.default_theta = 5e5, .may_be_of_images = true}}, decoder);
  decoder.qk_norm = QkNorm::head;
  decoder.qkv_bias = config.boolean("attention_bias", false);
  decoder.output_bias = decoder.qkv_bias;
  return decoder;
}

}  // namespace paceline
