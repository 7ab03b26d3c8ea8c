#include "kernels/cuda/emulation/kernel_table.h"

#include <vector>

#include "kernels/cuda/code/kernel_list.h"

namespace paceline::cuda::emulation {
namespace {

std::vector<EmulatedKernel>& kernels() {
  static std::vector<EmulatedKernel> table = {
#define PACELINE_EMULATED(name, ...) emulated_kernel<__VA_ARGS__>(),
      PACELINE_CUDA_KERNELS(PACELINE_EMULATED)
#undef PACELINE_EMULATED
  };
  return table;
}

}  // namespace

const EmulatedKernel* find_kernel(std::string_view name) {
  for (const EmulatedKernel& kernel : kernels()) {
    if (kernel.name == name) return &kernel;
  }
  return nullptr;
}

void add_kernel(const EmulatedKernel& kernel) { kernels().push_back(kernel); }

}  // namespace paceline::cuda::emulation
