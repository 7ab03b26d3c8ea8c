// Reads the fields of config.json that give layers caches of others and inputs of their own.
#pragma once

#include <cstdint>
#include <vector>

#include "models/hf_config.h"

namespace paceline {

// The last `num_kv_shared_layers` of the layers read the keys and values of the last one of their
// kind before them; `otherwise` without the field. Returns their number. Throws Error invalid
// naming the field where there is no such layer.
int64_t share_last_caches(const HfConfig& config, int64_t otherwise,
                          std::vector<LayerConfig>& layers);

// Sets `layer_inputs`; without the field their width is `width`, and 0 is none.
void read_layer_inputs(const HfConfig& config, int64_t width, DecoderConfig& decoder);

}  // namespace paceline
