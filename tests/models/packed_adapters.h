// Random adapters, packed for a model.
#pragma once

#include <span>
#include <vector>

#include "models/pack_adapter.h"
#include "tests/models/random_adapter.h"
#include "tests/models/test_model.h"

namespace paceline::testing {

struct PackedAdapters {
  PackedAdapters(TestModel& model, std::span<const RandomAdapter> kinds) {
    Memory memory;
    for (const RandomAdapter& kind : kinds) {
      weights.push_back(pack_adapter(random_adapter(model.config(), kind, memory), model.config(),
                                     model.backend()));
    }
  }
  std::vector<AdapterWeights> weights;
};

}  // namespace paceline::testing
