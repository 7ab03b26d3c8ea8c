// Sums and maxima over the threads of a block, in a fixed order: a butterfly inside each warp, then
// the warps in ascending order.
#pragma once

#include "kernels/cuda/code/device_code.h"

namespace paceline::cuda {

// The threads of a block that reduces a row. It fixes the order of the row's sums.
constexpr uint32_t kRowThreads = 256;

constexpr float kInfinity = __builtin_inff();

struct WarpPartials {
  float of_warp[kRowThreads / kWarpLanes];
};

struct Sum {
  PL_DEVICE static float combine(float a, float b) { return a + b; }
};

// NaN where either is NaN.
struct Maximum {
  PL_DEVICE static float combine(float a, float b) { return maximum_or_nan(a, b); }
};

// Every lane of the warp gets the result.
template <class How>
PL_DEVICE float reduce_warp(float value) {
  for (uint32_t distance = kWarpLanes / 2; distance > 0; distance /= 2) {
    value = How::combine(value, shuffle_xor(value, distance));
  }
  return value;
}

// Every thread of the block gets the result; all kRowThreads must call it.
template <class How>
PL_DEVICE float reduce_block(float value, WarpPartials& partials) {
  value = reduce_warp<How>(value);
  sync_threads();  // the partials of an earlier reduction have been read
  if (lane_index() == 0) partials.of_warp[warp_index()] = value;
  sync_threads();
  float total = partials.of_warp[0];
  for (uint32_t warp = 1; warp < kRowThreads / kWarpLanes; ++warp) {
    total = How::combine(total, partials.of_warp[warp]);
  }
  return total;
}

}  // namespace paceline::cuda
