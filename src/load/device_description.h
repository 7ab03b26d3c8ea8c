// What computes, for people: the processor or the GPU.
#pragma once

#include "kernels/backend.h"
#include "paceline/results.h"

namespace paceline::cuda {
class CudaDevice;
}  // namespace paceline::cuda

namespace paceline {

struct Machine;

// Of the machine's GPU, or of its processor.
DeviceInfo describe_device(const Machine& machine);
// Of the GPU, or of the machine where `device` is null: its kernels are then those of `isa`.
DeviceInfo describe_device(const cuda::CudaDevice* device, Isa isa, int num_threads);

}  // namespace paceline
