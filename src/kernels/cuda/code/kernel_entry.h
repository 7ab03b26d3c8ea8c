// run_kernel() is what a kernel's entry does: it waits for earlier kernels, unless the kernel does
// so itself, and runs the kernel's code.
#pragma once

#include "kernels/cuda/code/device_code.h"

namespace paceline::cuda {

template <class Kernel>
constexpr bool kBeginsEarly = !requires {
  Kernel::kBeginsLate;
};

template <class Kernel>
PL_DEVICE void run_kernel(const typename Kernel::Params& params, typename Kernel::Shared& shared) {
  if constexpr (kBeginsEarly<Kernel> && !requires { Kernel::kWaitsItself; }) {
    begin_later_kernels();
    wait_for_earlier_kernels();
  }
  Kernel::run(params, shared);
}

}  // namespace paceline::cuda
