// Everything that kernels may use: nvcc makes instructions of it, other compilers calls of the
// emulation.
//
// A kernel is a struct, one in a header of code/, listed in kernel_list.h:
//   struct RmsNorm {
//     static constexpr std::string_view kName = "rms_norm";
//     static constexpr uint32_t kThreads = 256;           // of a block: whole warps
//     struct Params { const float* x; float* out; ... };  // plain data, at most 4 KB
//     struct Shared { float partial[8]; };                // of a block, undefined at first
//     PL_DEVICE static void run(const Params& params, Shared& shared);
//   };
// Rules: all threads of a block reach every sync_threads(), all lanes of a warp every warp
// function, on the same line; a thread waits for its copies before it ends. The emulation reports
// what breaks them. PL_UNROLL stands before loops that index what must stay in registers, PL_ROLLED
// before long ones that seldom run.
// Contraction is off (a * b + c rounds twice): write fused_multiply_add where one is meant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#if defined(__CUDACC__)
#include "kernels/cuda/code/gpu_products.h"
#else
#include "kernels/cuda/emulation/emulated_thread.h"
#endif

namespace paceline::cuda {

constexpr uint32_t kWarpLanes = 32;

PL_DEVICE uint32_t lane_index() { return thread_index() % kWarpLanes; }
PL_DEVICE uint32_t warp_index() { return thread_index() / kWarpLanes; }

// 16 and 8 bytes, which load_as and store_as move at once.
struct alignas(16) Words4 {
  uint32_t words[4];
};
struct alignas(8) Words2 {
  uint32_t words[2];
};

}  // namespace paceline::cuda
