// MmaProbe multiplies tiles by single instructions: a device's arithmetic, to compare with the
// emulation's bit for bit.
#pragma once

#include "kernels/cuda/code/device_code.h"

namespace paceline::cuda {

// A block of one warp for each tile; fragments of the lanes as mma_bf16() takes them.
struct MmaProbe {
  static constexpr std::string_view kName = "mma_probe";
  static constexpr uint32_t kThreads = kWarpLanes;
  struct Params {
    const uint32_t* a;  // [tiles, lanes, 4]
    const uint32_t* b;  // [tiles, lanes, 2]
    float* d;           // [tiles, lanes, 4], added to
  };
  struct Shared {};

  PL_DEVICE static void run(const Params& params, Shared& /*shared*/) {
    const size_t lane = size_t{block_index().x} * kWarpLanes + lane_index();
    uint32_t a[4];
    uint32_t b[2];
    float d[4];
    for (size_t i = 0; i < 4; ++i) a[i] = params.a[lane * 4 + i];
    for (size_t i = 0; i < 2; ++i) b[i] = params.b[lane * 2 + i];
    for (size_t i = 0; i < 4; ++i) d[i] = params.d[lane * 4 + i];
    mma_bf16(d, a, b);
    for (size_t i = 0; i < 4; ++i) params.d[lane * 4 + i] = d[i];
  }
};

}  // namespace paceline::cuda
