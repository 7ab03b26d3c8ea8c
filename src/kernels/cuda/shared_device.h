// share_device() makes a device that any thread may call.
#pragma once

#include <memory>

#include "kernels/cuda/device.h"

namespace paceline::cuda {

// One call at a time reaches `device`. While a thread captures a graph, the calls of other threads
// wait until it has been captured.
std::unique_ptr<CudaDevice> share_device(std::unique_ptr<CudaDevice> device);

}  // namespace paceline::cuda
