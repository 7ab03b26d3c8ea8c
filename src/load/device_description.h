// What computes, for people: the processor or the GPU.
#pragma once

#include "kernels/backend.h"
#include "paceline/results.h"

namespace paceline::cuda {
class CudaDevice;
}  // namespace paceline::cuda

namespace paceline {

// Of the GPU, or of the machine where `device` is null: its kernels are then those of `isa`.
DeviceInfo describe_device(const cuda::CudaDevice* device, Isa isa, int num_threads);

}  // namespace paceline
