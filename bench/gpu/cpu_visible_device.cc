#include "bench/gpu/cpu_visible_device.h"

#include <cstring>

#include "base/error.h"

namespace paceline::cuda {
namespace {

constexpr size_t kAlignment = 256;

[[noreturn]] void refuse_graphs() {
  throw Error(ErrorCode::unsupported, "memory that the CPU sees: there are no graphs");
}

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

void CpuVisibleDevice::launch(const CudaGraph& /*graph*/) { refuse_graphs(); }

void CpuVisibleDevice::do_begin_capture() { refuse_graphs(); }

std::unique_ptr<CudaGraph> CpuVisibleDevice::do_end_capture() { refuse_graphs(); }

void CpuVisibleDevice::do_launch(const KernelEntry& kernel, Grid grid,
                                 std::span<const std::byte> params) {
  device_.launch(kernel, grid, params);
  device_.synchronize();
}

}  // namespace paceline::cuda
