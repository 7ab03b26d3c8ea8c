// A CUDA backend on the emulation, with all that it needs.
#pragma once

#include <memory>

#include "base/thread_pool.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/make_cuda_backend.h"
#include "tests/kernels/op_inputs.h"

namespace paceline::cuda {

// Without guards the tests' own code may read and write the device's memory.
struct EmulatedBackend {
  explicit EmulatedBackend(const EmulationOptions& options = {})
      : device(make_emulated_device(options)), backend(make_cuda_backend(*device, threads)) {}

  ThreadPool threads{2};
  std::unique_ptr<CudaDevice> device;
  std::unique_ptr<Backend> backend;
  PackedBy packing{*backend};

  Backend& operator*() const { return *backend; }
  Backend* operator->() const { return backend.get(); }
};

}  // namespace paceline::cuda
