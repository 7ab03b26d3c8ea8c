// launch<Kernel>(device, grid, params) runs a kernel of code/ with its parameters' type checked.
#pragma once

#include <span>
#include <type_traits>

#include "kernels/cuda/code/kernel_entry.h"
#include "kernels/cuda/device.h"

namespace paceline::cuda {

template <class Kernel>
constexpr KernelEntry kernel_entry() {
  using Shared = typename Kernel::Shared;
  static_assert(Kernel::kThreads >= 32 && Kernel::kThreads <= 1024 && Kernel::kThreads % 32 == 0,
                "a block has whole warps, at most 32");
  static_assert(std::is_trivially_default_constructible_v<Shared>,
                "nothing initialises shared memory");
  return {.name = Kernel::kName,
          .threads = Kernel::kThreads,
          .shared_bytes = std::is_empty_v<Shared> ? 0 : uint32_t{sizeof(Shared)},
          .begins_early = kBeginsEarly<Kernel>};
}

// A grid without blocks runs nothing.
template <class Kernel>
void launch(CudaDevice& device, Grid grid, const typename Kernel::Params& params) {
  using Params = typename Kernel::Params;
  static_assert(std::is_trivially_copyable_v<Params>, "parameters are copied as bytes");
  static_assert(sizeof(Params) <= 4096, "a kernel's parameters have at most 4 KB");
  device.launch(kernel_entry<Kernel>(), grid, std::as_bytes(std::span(&params, 1)));
}

}  // namespace paceline::cuda
