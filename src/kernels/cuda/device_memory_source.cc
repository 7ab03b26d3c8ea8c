#include "kernels/cuda/device_memory_source.h"

#include <cerrno>

#include "base/error.h"

namespace paceline::cuda {

void* DeviceMemorySource::take(size_t capacity) {
  void* block = nullptr;
  try {
    block = device_.allocate(capacity);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::exhausted) throw;
    errno = ENOMEM;
    return nullptr;
  }
  device_.clear(block, capacity);
  return block;
}

void DeviceMemorySource::give_back(void* block, size_t capacity) noexcept {
  device_.release(block, capacity);
}

void DeviceMemorySource::clear(void* block, size_t capacity) { device_.clear(block, capacity); }

}  // namespace paceline::cuda
