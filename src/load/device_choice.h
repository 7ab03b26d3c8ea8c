// Chooses what computes a model: the device that --device names, or with auto the first GPU that
// the model fits, and else the CPU.
#pragma once

#include <memory>
#include <string>

#include "base/thread_pool.h"
#include "kernels/cuda/device.h"
#include "paceline/options.h"

namespace paceline {

struct DeviceChoice {
  std::unique_ptr<cuda::CudaDevice> device;  // null: the CPU computes
  // What --device auto did with the GPU that is there, for people; empty without one, and for other
  // values of --device.
  std::string note;
};

// Throws Error as open_device() does. A model that can't be read throws here only where --device
// auto finds a GPU.
DeviceChoice choose_device(const LoadOptions& options, ThreadPool& threads);

}  // namespace paceline
