// Opens the GPU that LoadOptions::device names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/cuda/device.h"
#include "paceline/options.h"

namespace paceline {

// Null: the CPU computes, as it does with auto where there is no GPU, or where --weights-cache
// keeps weights for the CPU. Throws Error invalid for another name than auto, cpu, cuda and cuda:N,
// and for options that a GPU's models can't have; unsupported where there is no such GPU, and for
// --gpu-layers beside the CPU. --gpu-layers 0 is the CPU. PACELINE_CUDA_EMULATION=1 makes the
// emulation of a GPU of `auto`, `cuda`, on `num_threads` of the CPU. Any thread may call the
// device: adapters are loaded beside the engine.
std::unique_ptr<cuda::CudaDevice> open_device(const LoadOptions& options, int num_threads);

// Throws Error unsupported where --gpu-layers names some of the layers, not all.
void check_gpu_layers(const LoadOptions& options, int64_t num_layers);

// The bytes that are left for keys and values of a share of a GPU's memory.
size_t useful_device_bytes(size_t total_bytes, size_t free_bytes, double utilization);

}  // namespace paceline
