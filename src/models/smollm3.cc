// SmolLM 3 (transformers' modeling_smollm3): Llama's block, in which some layers don't rotate.
#include <fmt/format.h>

#include "models/family.h"

namespace paceline {
namespace {

constexpr CommonDefaults kSmolLm3Defaults = {.vocab_size = 128256,
                                             .num_heads = 16,
                                             .num_kv_heads = 4,
                                             .max_position = 32768,
                                             .tied_head = true};

// Whether each layer rotates: `no_rope_layers` has 1 where it does. Without it every
// no_rope_layer_interval-th layer doesn't.
std::vector<bool> read_rotating_layers(const HfConfig& config, int64_t num_layers) {
  constexpr std::string_view kKey = "no_rope_layers";
  std::vector<bool> rotates;
  const auto listed = config.find(kKey);
  if (!listed) {
    const int64_t interval = config.integer("no_rope_layer_interval");
    for (int64_t i = 0; i < num_layers; ++i) rotates.push_back((i + 1) % interval != 0);
    return rotates;
  }
  const auto items = listed->items();
  if (static_cast<int64_t>(items.size()) < num_layers) {
    config.invalid(kKey, fmt::format("{} entries for {} layers", items.size(), num_layers));
  }
  for (int64_t i = 0; i < num_layers; ++i) {
    rotates.push_back(items[static_cast<size_t>(i)].integer({.min = 0, .max = 1}) == 1);
  }
  return rotates;
}

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
