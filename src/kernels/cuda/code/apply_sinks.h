// Attention sinks: scores that have no value.
#pragma once

#include "kernels/cuda/code/elementwise.h"

namespace paceline::cuda {

// Multiplies each head by the share that an attention sink leaves it.
struct ApplySinks {
  static constexpr std::string_view kName = "apply_sinks";
  static constexpr uint32_t kThreads = kWarpLanes;
  struct Params {
    ConstRows log_sum_exp;
    const float* sinks = nullptr;  // of the heads, along y of the grid
    Heads out;
    int64_t head_dim = 0;
  };
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const uint32_t head = block_index().y;
    const float share = sigmoid(p.log_sum_exp.row(block_index().x)[head] - p.sinks[head]);
    float* const out = p.out.head(block_index().x, head);
    for (int64_t d = thread_index(); d < p.head_dim; d += kThreads) out[d] = out[d] * share;
  }
};

}  // namespace paceline::cuda
