// The kernels as nvcc compiled them, which the program carries.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace paceline::cuda {

// A fat binary; empty in a build without nvcc (PACELINE_CUDA).
std::span<const std::byte> kernel_binary();
// "80, 89, 90a": the capabilities that it has kernels for.
std::string_view kernel_architectures();

}  // namespace paceline::cuda
