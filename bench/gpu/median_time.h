// median_seconds() is the time of one run of some work on a GPU.
#pragma once

#include <cstdint>
#include <functional>

#include "kernels/cuda/device.h"

namespace paceline {

// Calls run(0), run(1), ... many times without waiting between them, in batches of `batch_seconds`:
// the median of 5 batches, divided by their calls. The first call is not counted.
double median_seconds(cuda::CudaDevice& device, double batch_seconds,
                      const std::function<void(int64_t)>& run);

}  // namespace paceline
