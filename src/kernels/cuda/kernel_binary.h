// The kernels as nvcc compiled them, which the program carries.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace paceline::cuda {

struct KernelBinary {
  std::span<const std::byte> bytes;  // a fat binary; empty in a build without nvcc (PACELINE_CUDA)
  std::string_view architectures;    // "80, 89, 90a": the capabilities that it has kernels for
  int cuda = 0;                      // 13: the major version of the nvcc that made it
};
KernelBinary kernel_binary();

}  // namespace paceline::cuda
