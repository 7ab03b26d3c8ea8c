// Bamba (transformers' modeling_bamba): Mamba 2, and some layers attention of which half a head
// rotates.
#include <algorithm>

#include "models/family.h"
#include "models/mamba2_fields.h"
#include "models/rope_fields.h"

namespace paceline {
namespace {

constexpr CommonDefaults kBambaDefaults = {.vocab_size = 128000,
                                           .num_heads = 32,
                                           .num_kv_heads = 8,
                                           .intermediate_size = 14336,
                                           .max_position = 262144,
                                           .norm_eps = 1e-5};

std::vector<LayerConfig> read_bamba_layers(const HfConfig& config) {
  std::vector<LayerConfig> layers = uniform_layers(read_num_layers(config), 0);
  for (LayerConfig& layer : layers) layer.mixer = MixerKind::mamba2;
  const auto listed = config.find("attn_layer_indices");
  if (!listed) return layers;
  for (const JsonCursor& item : listed->items()) {
    const auto index = static_cast<size_t>(item.integer({.min = 0, .max = 1 << 20}));
    if (index < layers.size()) layers[index].mixer = MixerKind::attention;
  }
  return layers;
}

}  // namespace

DecoderConfig read_bamba(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kBambaDefaults);
  read_bamba_block(config, decoder);
  decoder.layers = read_bamba_layers(config);
  read_mamba2(config, {}, read_expanded_size(config, decoder.hidden_size), decoder);
  read_ropes(config, {{.rotates_part = true, .default_share = 0.5}}, decoder);
  return decoder;
}

}  // namespace paceline
