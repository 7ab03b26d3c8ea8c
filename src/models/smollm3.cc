// SmolLM 3 (transformers' modeling_smollm3): Llama's block, in which some layers don't rotate.
#include "models/family.h"

namespace paceline {
namespace {

constexpr CommonDefaults kSmolLm3Defaults = {.vocab_size = 128256,
                                             .num_heads = 16,
                                             .num_kv_heads = 4,
                                             .max_position = 32768,
                                             .tied_head = true};

}  // namespace

DecoderConfig read_smollm3(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kSmolLm3Defaults);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.qkv_bias = config.boolean("attention_bias", false);
  decoder.output_bias = decoder.qkv_bias;
  decoder.mlp_bias = config.boolean("mlp_bias", false);
  const int64_t num_layers = read_num_layers(config);
  const std::vector<bool> rotates = read_rotating_layers(config, num_layers);
  std::optional<int64_t> window;
  if (const int64_t length = read_optional_window(config); length > 0) window = length;
  const auto sliding = read_sliding_layers(config, num_layers);
  const bool slides = window && config.boolean("use_sliding_window", false);
  decoder.layers =
      sliding ? windowed_layers(config, *sliding, window) : uniform_layers(num_layers, 0);
  for (size_t i = 0; i < decoder.layers.size(); ++i) {
    if (!rotates[i]) decoder.layers[i].rope_index = kNoRope;
    if (!sliding && slides && !rotates[i]) decoder.layers[i].window = *window;
  }
  read_ropes(config, {{.default_theta = 2e6}}, decoder);
  return decoder;
}

}  // namespace paceline
