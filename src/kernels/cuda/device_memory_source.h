// DeviceMemorySource hands a device's memory to a Memory, which accounts and caches it.
#pragma once

#include "kernels/cuda/device.h"
#include "tensor/memory.h"

namespace paceline::cuda {

class DeviceMemorySource final : public MemorySource {
 public:
  // The device must outlive it.
  explicit DeviceMemorySource(CudaDevice& device) : device_(device) {}

  void* take(size_t capacity) override;
  void give_back(void* block, size_t capacity) noexcept override;
  void will_cache() noexcept override { device_.will_cache(); }
  void clear(void* block, size_t capacity) override;

 private:
  CudaDevice& device_;
};

}  // namespace paceline::cuda
