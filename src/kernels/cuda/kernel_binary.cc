#include "kernels/cuda/kernel_binary.h"

#if defined(PACELINE_KERNEL_BINARY)
asm(".section .rodata.paceline_kernels, \"a\"\n"
    ".balign 64\n"
    ".hidden paceline_kernels_begin\n"
    ".hidden paceline_kernels_end\n"
    ".globl paceline_kernels_begin\n"
    ".globl paceline_kernels_end\n"
    "paceline_kernels_begin:\n"
    ".incbin \"" PACELINE_KERNEL_BINARY
    "\"\n"
    "paceline_kernels_end:\n"
    ".previous\n");

extern "C" const std::byte paceline_kernels_begin[];
extern "C" const std::byte paceline_kernels_end[];
#endif

namespace paceline::cuda {

KernelBinary kernel_binary() {
#if defined(PACELINE_KERNEL_BINARY)
  return {{paceline_kernels_begin, paceline_kernels_end},
          PACELINE_KERNEL_ARCHITECTURES,
          PACELINE_KERNEL_CUDA};
#else
  return {};
#endif
}

}  // namespace paceline::cuda
