// A Backend on a CudaDevice.
#pragma once

#include <memory>

#include "base/thread_pool.h"
#include "kernels/backend.h"
#include "kernels/cuda/device.h"

namespace paceline::cuda {

// Every operation of serving; gradients() throws Error unsupported. memory() is the device's. The
// threads pack weights. Both must outlive the backend.
std::unique_ptr<Backend> make_cuda_backend(CudaDevice& device, ThreadPool& threads);
// Beside another backend on the same device, for another thread: in its memory.
std::unique_ptr<Backend> make_cuda_backend(CudaDevice& device, ThreadPool& threads, Memory& memory);

}  // namespace paceline::cuda
