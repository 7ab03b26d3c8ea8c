// Opens the GPU that LoadOptions::device names.
#pragma once

#include <memory>

#include "kernels/cuda/device.h"
#include "paceline/options.h"

namespace paceline {

// Null: the CPU computes. Throws Error invalid for another name than auto, cpu, cuda and cuda:N,
// and for options that a GPU's models can't have; unsupported where there is no such GPU.
// PACELINE_CUDA_EMULATION=1 makes the emulation of a GPU of `cuda`, on `num_threads` of the CPU.
std::unique_ptr<cuda::CudaDevice> open_device(const LoadOptions& options, int num_threads);

}  // namespace paceline
