// Qwen 2 (bias on q, k and v) and Qwen 3 (q and k norms), transformers' modeling_qwen2 and _qwen3.
#include "models/family.h"

namespace paceline {
namespace {

// With use_sliding_window, the layers from max_window_layers on slide, unless layer_types says.
std::vector<LayerConfig> read_layers(const HfConfig& config) {
  const int64_t num_layers = config.integer("num_hidden_layers", {}, {1, 1024});
  if (!config.boolean("use_sliding_window", false)) return uniform_layers(num_layers, 0);
  const int64_t window = config.integer("sliding_window", 4096, {1, 1 << 30});
  if (const auto sliding = read_sliding_layers(config, num_layers)) {
    return windowed_layers(*sliding, window);
  }
  const int64_t first = config.integer("max_window_layers", 28, {0, 1 << 20});
  std::vector<LayerConfig> layers = uniform_layers(num_layers, 0);
  for (int64_t i = first; i < num_layers; ++i) layers[static_cast<size_t>(i)].window = window;
  return layers;
}

DecoderConfig read_qwen(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.ropes = {read_rope(config, {})};
  decoder.layers = read_layers(config);
  return decoder;
}

}  // namespace

DecoderConfig read_qwen2(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_qwen(config, weights);
  decoder.qkv_bias = true;
  return decoder;
}

DecoderConfig read_qwen3(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_qwen(config, weights);
  decoder.qk_norm = true;
  decoder.qkv_bias = config.boolean("attention_bias", false);
  decoder.output_bias = decoder.qkv_bias;
  return decoder;
}

}  // namespace paceline
