// The entry points of all kernels, by which the driver finds them in the module.
#include "kernels/cuda/code/kernel_entry.h"
#include "kernels/cuda/code/kernel_list.h"

extern __shared__ __align__(128) unsigned char shared_memory[];

#define PACELINE_ENTRY(bounds, name, ...)                                \
  static_assert(__VA_ARGS__::kName == #name);                            \
  extern "C" __global__ void bounds paceline_##name(                     \
      const __grid_constant__ __VA_ARGS__::Params params) {              \
    paceline::cuda::run_kernel<__VA_ARGS__>(                             \
        params, *reinterpret_cast<__VA_ARGS__::Shared*>(shared_memory)); \
  }
#define PACELINE_USUAL_ENTRY(name, ...) \
  PACELINE_ENTRY(__launch_bounds__(__VA_ARGS__::kThreads), name, __VA_ARGS__)
#define PACELINE_LARGE_ENTRY(name, ...) \
  PACELINE_ENTRY(__launch_bounds__(__VA_ARGS__::kThreads, 1), name, __VA_ARGS__)
#define PACELINE_TILE_ENTRY(name, ...)                                                       \
  PACELINE_ENTRY(__launch_bounds__(__VA_ARGS__::kThreads, __VA_ARGS__::kBlocksAtOnce), name, \
                 __VA_ARGS__)
using namespace paceline::cuda;
PACELINE_CUDA_TILE_KERNELS(PACELINE_TILE_ENTRY)
PACELINE_CUDA_USUAL_KERNELS(PACELINE_USUAL_ENTRY)
PACELINE_CUDA_EXPERT_KERNELS(PACELINE_USUAL_ENTRY)
PACELINE_CUDA_GRADIENT_KERNELS(PACELINE_USUAL_ENTRY)
PACELINE_CUDA_LARGE_KERNELS(PACELINE_LARGE_ENTRY)
