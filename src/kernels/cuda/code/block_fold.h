// Folds of integers over the threads of a block: sums, largest and least ones, the same in any
// order.
#pragma once

#include "kernels/cuda/code/device_code.h"

namespace paceline::cuda {

// The threads of a block that draws from a row.
constexpr uint32_t kDrawThreads = 512;

struct FoldShared {
  uint64_t of_thread[kDrawThreads];
  uint64_t of_lane[kWarpLanes];
};

struct SumOf {
  PL_DEVICE static uint64_t combine(uint64_t a, uint64_t b) { return a + b; }
};
struct MostOf {
  PL_DEVICE static uint64_t combine(uint64_t a, uint64_t b) { return a > b ? a : b; }
};
struct LeastOf {
  PL_DEVICE static uint64_t combine(uint64_t a, uint64_t b) { return a < b ? a : b; }
};

// Every thread of the block gets the result; all kDrawThreads must call it.
template <class How>
PL_DEVICE uint64_t fold_block(uint64_t value, FoldShared& shared) {
  shared.of_thread[thread_index()] = value;
  sync_threads();
  if (thread_index() < kWarpLanes) {
    uint64_t total = shared.of_thread[thread_index()];
    PL_UNROLL
    for (uint32_t i = kWarpLanes; i < kDrawThreads; i += kWarpLanes) {
      total = How::combine(total, shared.of_thread[thread_index() + i]);
    }
    shared.of_lane[thread_index()] = total;
  }
  sync_threads();
  uint64_t total = shared.of_lane[0];
  PL_UNROLL
  for (uint32_t i = 1; i < kWarpLanes; ++i) total = How::combine(total, shared.of_lane[i]);
  return total;
}

}  // namespace paceline::cuda
