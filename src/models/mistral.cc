// Mistral (transformers' modeling_mistral): Llama's block, with one window for every layer or none.
#include "models/family.h"

namespace paceline {

DecoderConfig read_mistral(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.ropes = {read_rope(config, {})};
  const int64_t num_layers = config.integer("num_hidden_layers", {}, {1, 1024});
  const int64_t window = config.integer("sliding_window", 0, {1, 1 << 30});
  decoder.layers = uniform_layers(num_layers, window);
  return decoder;
}

}  // namespace paceline
