#include "models/layer_fields.h"

#include <fmt/format.h>

#include <algorithm>

namespace paceline {

int64_t share_last_caches(const HfConfig& config, int64_t otherwise,
                          std::vector<LayerConfig>& layers) {
  constexpr std::string_view kKey = "num_kv_shared_layers";
  const int64_t num_shared = config.integer(kKey, otherwise);
  const int64_t num_own = std::ssize(layers) - num_shared;
  for (int64_t i = std::max<int64_t>(num_own, 0); i < std::ssize(layers); ++i) {
    LayerConfig& layer = layers[static_cast<size_t>(i)];
    int64_t source = num_own - 1;
    while (source >= 0 && layers[static_cast<size_t>(source)].window != layer.window) --source;
    if (source < 0) {
      config.invalid(kKey, fmt::format("{} of {} layers, but no layer of the kind of layer {} is "
                                       "left that has keys and values of its own",
                                       num_shared, layers.size(), i));
    }
    layer.shares_cache_of = source;
  }
  return num_shared;
}

void read_layer_inputs(const HfConfig& config, int64_t width, DecoderConfig& decoder) {
  constexpr int64_t kTableSize = 262144;
  const int64_t own = config.integer_or_null("hidden_size_per_layer_input", width).value_or(0);
  if (own == 0) return;
  decoder.layer_inputs = {.width = own,
                          .vocab_size = config.integer("vocab_size_per_layer_input", kTableSize)};
}

}  // namespace paceline
