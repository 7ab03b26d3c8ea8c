#include "kernels/cuda/emulation/device_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "kernels/cuda/emulation/fiber.h"

#if defined(PACELINE_ASAN_FIBERS)
#include <sanitizer/asan_interface.h>
#endif

namespace paceline::cuda::emulation {
namespace {

constexpr size_t kZone = 256;  // before and behind a block
constexpr int kPoison = 0xFF;  // NaN in every float type, -1 in integers
constexpr size_t kPage = 4096;

constexpr size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

void forbid([[maybe_unused]] std::byte* zone, [[maybe_unused]] size_t bytes) {
#if defined(PACELINE_ASAN_FIBERS)
  __asan_poison_memory_region(zone, bytes);
#endif
}

void permit([[maybe_unused]] std::byte* zone, [[maybe_unused]] size_t bytes) {
#if defined(PACELINE_ASAN_FIBERS)
  __asan_unpoison_memory_region(zone, bytes);
#endif
}

bool is_intact([[maybe_unused]] const std::byte* zone, [[maybe_unused]] size_t bytes) {
#if defined(PACELINE_ASAN_FIBERS)
  return true;  // nobody could write there
#else
  return std::all_of(zone, zone + bytes, [](std::byte b) { return b == std::byte{kPoison}; });
#endif
}

}  // namespace

DeviceMemory::DeviceMemory(size_t total_bytes, bool is_guarded) : total_bytes_(total_bytes) {
  if (!is_guarded) return;
  room_bytes_ = round_up(total_bytes * 4, kPage);  // released blocks' addresses aren't reused
  void* const mapped =
      ::mmap(nullptr, room_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    throw Error(ErrorCode::exhausted,
                fmt::format("no addresses for {} bytes of guarded memory", room_bytes_));
  }
  pages_ = static_cast<std::byte*>(mapped);
}

DeviceMemory::~DeviceMemory() {
  while (!blocks_.empty()) release(const_cast<std::byte*>(blocks_.begin()->first));
  if (pages_ == nullptr) return;
  permit(pages_, taken_bytes_);  // whoever maps these addresses next
  ::munmap(pages_, room_bytes_);
}

std::byte* DeviceMemory::take(size_t capacity) {
  if (pages_ == nullptr) return static_cast<std::byte*>(std::aligned_alloc(kZone, capacity));
  if (capacity > room_bytes_ - taken_bytes_) return nullptr;
  std::byte* const block = pages_ + taken_bytes_;
  taken_bytes_ += capacity;
  return block;
}

void* DeviceMemory::allocate(size_t bytes) {
  const size_t capacity = round_up(2 * kZone + bytes, pages_ == nullptr ? kZone : kPage);
  std::byte* const begin = bytes <= total_bytes_ - used_bytes_ ? take(capacity) : nullptr;
  if (begin == nullptr) {
    throw Error(ErrorCode::exhausted,
                fmt::format("the emulated device has no memory for {} bytes: {} of {} are free",
                            bytes, total_bytes_ - used_bytes_, total_bytes_));
  }
  used_bytes_ += bytes;
  std::byte* const block = begin + kZone;
  blocks_[block] = {.bytes = bytes, .begin = begin, .capacity = capacity};
  {
    const Access access(*this);
    std::memset(begin, kPoison, capacity);
  }
  forbid(begin, kZone);
  forbid(block + bytes, capacity - kZone - bytes);
  return block;
}

void DeviceMemory::release(void* block) noexcept {
  const auto found = blocks_.find(static_cast<std::byte*>(block));
  PL_CHECK(found != blocks_.end(), "released a block that the device does not have");
  const Block freed = found->second;
  blocks_.erase(found);
  used_bytes_ -= freed.bytes;
  if (pages_ == nullptr) {
    permit(freed.begin, freed.capacity);
    std::free(freed.begin);
    return;
  }
  forbid(freed.begin, freed.capacity);
  ::madvise(freed.begin, freed.capacity, MADV_DONTNEED);
  ::mprotect(freed.begin, freed.capacity, PROT_NONE);
}

void DeviceMemory::protect(bool is_open) {
  if (pages_ == nullptr) return;
  const int protection = is_open ? PROT_READ | PROT_WRITE : PROT_NONE;
  PL_CHECK(::mprotect(pages_, taken_bytes_, protection) == 0, "mprotect of guarded memory");
}

void DeviceMemory::check_range(std::string_view what, const void* address, size_t bytes) const {
  if (bytes == 0) return;
  const auto* const first = static_cast<const std::byte*>(address);
  auto next = blocks_.upper_bound(first);
  if (next != blocks_.begin()) {
    const auto& [begin, block] = *std::prev(next);
    const auto offset = static_cast<size_t>(first - begin);
    if (offset <= block.bytes && bytes <= block.bytes - offset) return;
    if (offset < block.bytes) {
      throw Error(ErrorCode::internal, fmt::format("{}: {} bytes at offset {} of a block of {}",
                                                   what, bytes, offset, block.bytes));
    }
  }
  throw Error(ErrorCode::internal,
              fmt::format("{}: {} bytes that are not the device's memory", what, bytes));
}

void DeviceMemory::check_zones(std::string_view what) {
  for (const auto& [address, block] : blocks_) {
    const size_t behind = block.capacity - kZone - block.bytes;
    const bool is_before = !is_intact(block.begin, kZone);
    if (!is_before && is_intact(address + block.bytes, behind)) continue;
    throw Error(ErrorCode::internal, fmt::format("{} wrote {} a block of {} bytes", what,
                                                 is_before ? "before" : "behind", block.bytes));
  }
}

}  // namespace paceline::cuda::emulation
