// Mistral (transformers' modeling_mistral): Llama's block, with one window for every layer or none.
#include "models/family.h"

namespace paceline {
namespace {

constexpr int64_t kMistralWindow = 4096;  // without the field; null: no window
constexpr CommonDefaults kMistralDefaults = {.num_kv_heads = 8, .max_position = 131072};

}  // namespace

DecoderConfig read_mistral(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kMistralDefaults);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  const auto window = config.integer_or_null("sliding_window", kMistralWindow);
  decoder.layers = uniform_layers(read_num_layers(config), window.value_or(0));
  read_ropes(config, {{}}, decoder);
  return decoder;
}

}  // namespace paceline
