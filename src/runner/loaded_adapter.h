// LoadedAdapter is an adapter ready to be computed, which requests share.
#pragma once

#include <cstdint>
#include <string>

#include "base/siphash.h"
#include "layers/adapter_weights.h"

namespace paceline {

// Immutable. Requests hold it until their last sequence has ended, so its name may have been taken
// from the list of adapters, or given to another one, before it goes.
struct LoadedAdapter {
  std::string name;
  Hash128 digest;  // of its content (Adapter::digest): requests of equal ones share prefixes
  int64_t max_rank = 0;
  AdapterWeights weights;
};

}  // namespace paceline
