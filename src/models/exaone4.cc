// EXAONE 4 (transformers' modeling_exaone4): norms behind attention and MLP, norms of each head of
// q and k. In a model with windows the layers without one don't rotate.
#include "models/family.h"

namespace paceline {
namespace {

constexpr int64_t kExaoneWindow = 4096;
constexpr int64_t kExaonePattern = 4;  // every fourth layer has full attention
constexpr CommonDefaults kExaone4Defaults = {
    .vocab_size = 102400, .num_heads = 32, .num_kv_heads = 32, .norm_eps = 1e-5};

std::vector<LayerConfig> read_windows(const HfConfig& config, std::optional<int64_t> window) {
  const int64_t num_layers = read_num_layers(config);
  if (const auto sliding = read_sliding_layers(config, num_layers)) {
    return windowed_layers(config, *sliding, window);
  }
  if (!window) return uniform_layers(num_layers, 0);
  const int64_t pattern = config.integer("sliding_window_pattern", kExaonePattern);
  return windowed_layers(config, sliding_pattern(num_layers, pattern), window);
}

}  // namespace

std::vector<LayerConfig> read_exaone_layers(const HfConfig& config) {
  const auto window = config.integer_or_null("sliding_window", kExaoneWindow);
  std::vector<LayerConfig> layers = read_windows(config, window);
  for (LayerConfig& layer : layers) {
    if (window && layer.window == 0) layer.rope_index = kNoRope;
  }
  return layers;
}

DecoderConfig read_exaone4(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kExaone4Defaults);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.qk_norm = QkNorm::head;
  decoder.norms = kNormsBehind;
  decoder.layers = read_exaone_layers(config);
  read_ropes(config, {{}}, decoder);
  return decoder;
}

}  // namespace paceline
