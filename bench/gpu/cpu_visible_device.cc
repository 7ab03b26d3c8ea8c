#include "bench/gpu/cpu_visible_device.h"

#include <cstring>

namespace paceline::cuda {
namespace {

constexpr size_t kAlignment = 256;

}  // namespace

void* CpuVisibleDevice::allocate(size_t bytes) {
  void* const pinned = device_.allocate_pinned(bytes + kAlignment);
  const auto address = reinterpret_cast<uintptr_t>(pinned);
  const uintptr_t aligned = (address + kAlignment - 1) / kAlignment * kAlignment;
  void* const block = static_cast<std::byte*>(pinned) + (aligned - address);
  std::memset(block, 0xFF, bytes);
  blocks_[block] = pinned;
  return block;
}

void CpuVisibleDevice::release(void* block, size_t bytes) noexcept {
  const auto found = blocks_.find(block);
  device_.release_pinned(found->second, bytes + kAlignment);
  blocks_.erase(found);
}

void CpuVisibleDevice::clear(void* block, size_t bytes) {
  device_.synchronize();
  std::memset(block, 0, bytes);
}

void CpuVisibleDevice::copy_to_device(void* to, const void* from, size_t bytes) {
  device_.synchronize();
  if (bytes > 0) std::memcpy(to, from, bytes);
}

void CpuVisibleDevice::copy_from_device(void* to, const void* from, size_t bytes) {
  copy_to_device(to, from, bytes);
}

void CpuVisibleDevice::copy_within_device(void* to, const void* from, size_t bytes) {
  copy_to_device(to, from, bytes);
}

void CpuVisibleDevice::do_launch(const KernelEntry& kernel, Grid grid,
                                 std::span<const std::byte> params) {
  device_.launch(kernel, grid, params);
  device_.synchronize();
}

}  // namespace paceline::cuda
