// Reads the fields of config.json that describe gated delta nets.
#pragma once

#include "models/hf_config.h"

namespace paceline {

// The sizes of a family's class.
struct DeltaNetDefaults {
  int64_t key_heads = 16;
  int64_t value_heads = 32;
  int64_t key_dim = 128;
  int64_t value_dim = 128;
};

// Reads the sizes. Throws Error invalid naming a field that contradicts another.
DeltaNetConfig read_delta_net(const HfConfig& config, const DeltaNetDefaults& defaults = {});

}  // namespace paceline
