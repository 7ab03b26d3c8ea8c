// Adapters of random matrices for a decoder.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "adapters/adapter.h"
#include "models/block_projections.h"
#include "models/decoder_config.h"

namespace paceline::testing {

// Every projection of a layer once: of experts with even numbers gate and up, of others gate_up
// unless all are apart.
std::vector<BlockProjection> distinct_projections(const DecoderConfig& config, int64_t layer,
                                                  bool gate_up_apart = false);

struct RandomAdapter {
  uint64_t seed = 1;
  DType dtype = DType::bf16;
  int64_t min_rank = 1;  // each module draws its own rank
  int64_t max_rank = 5;
  float size = 0.2f;    // of the elements
  float b_size = 0.2f;  // of B's
  // Of all experts, as PEFT's files have experts of different ranks.
  bool gate_up_apart = false;
  // Whether a module is adapted; nothing: all are.
  std::function<bool(std::string_view module)> adapts = {};
};

Adapter random_adapter(const DecoderConfig& config, const RandomAdapter& options, Memory& memory);

}  // namespace paceline::testing
