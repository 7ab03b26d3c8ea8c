// DeviceRates measures what a GPU does at best: copies, and matrix instructions on registers.
#pragma once

#include <cstddef>
#include <functional>

#include "kernels/cuda/device.h"

namespace paceline::cuda {

// The device must outlive it, and do nothing else meanwhile.
class DeviceRates {
 public:
  explicit DeviceRates(CudaDevice& device);
  ~DeviceRates();
  DeviceRates(const DeviceRates&) = delete;
  DeviceRates& operator=(const DeviceRates&) = delete;

  // Bytes read and written. Each measurement takes about `seconds`, and at least two launches.
  double copied_bytes_per_s(double seconds);
  // Multiplications and additions of mma.sync with bfloat16.
  double mma_flops_per_s(double seconds);

 private:
  // Work per second of run(times), which is called with growing numbers.
  double rate_of(double seconds, const std::function<void(int64_t)>& run);

  CudaDevice& device_;
  CudaDeviceInfo info_;
  size_t bytes_;
  void* from_;
  void* to_;
};

}  // namespace paceline::cuda
