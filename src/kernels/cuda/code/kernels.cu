// The entry points of all kernels, by which the driver finds them in the module.
#include "kernels/cuda/code/kernel_list.h"

namespace paceline::cuda {

extern __shared__ __align__(128) unsigned char shared_memory[];

}  // namespace paceline::cuda

// At least one block on a multiprocessor: left to itself, the compiler may spill registers so that
// more have room.
#define PACELINE_ENTRY(name, ...)                                                             \
  static_assert(__VA_ARGS__::kName == #name);                                                 \
  extern "C" __global__ void __launch_bounds__(__VA_ARGS__::kThreads, 1)                      \
      paceline_##name(const __grid_constant__ __VA_ARGS__::Params params) {                   \
    __VA_ARGS__::run(params,                                                                  \
                     *reinterpret_cast<__VA_ARGS__::Shared*>(paceline::cuda::shared_memory)); \
  }
using namespace paceline::cuda;
PACELINE_CUDA_KERNELS(PACELINE_ENTRY)
