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
constexpr size_t kArena = size_t{64} << 20;  // of guarded memory

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
  return true;  // ASan has reported a write there already
#else
  return std::all_of(zone, zone + bytes, [](std::byte b) { return b == std::byte{kPoison}; });
#endif
}

}  // namespace

DeviceMemory::DeviceMemory(size_t total_bytes, bool is_guarded)
    : total_bytes_(total_bytes), is_guarded_(is_guarded) {}

DeviceMemory::~DeviceMemory() {
  while (!blocks_.empty()) release(const_cast<std::byte*>(blocks_.begin()->first));
  for (const Arena& arena : arenas_) {
    permit(arena.pages, arena.bytes);  // the addresses may be mapped again by others
    ::munmap(arena.pages, arena.bytes);
  }
}

// nullptr where there is none.
std::byte* DeviceMemory::take(size_t capacity) {
  return is_guarded_ ? take_guarded(capacity)
                     : static_cast<std::byte*>(std::aligned_alloc(kZone, capacity));
}

std::byte* DeviceMemory::take_guarded(size_t capacity) {
  if (const auto found = freed_.find(capacity); found != freed_.end()) {
    std::byte* const block = found->second;
    freed_.erase(found);
    permit(block, capacity);
    return block;
  }
  if (arenas_.empty() || arenas_.back().bytes - arenas_.back().taken_bytes < capacity) {
    const size_t bytes = std::max(capacity, kArena);
    void* const mapped =
        ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    arenas_.push_back({.pages = static_cast<std::byte*>(mapped), .bytes = bytes});
  }
  Arena& arena = arenas_.back();
  std::byte* const block = arena.pages + arena.taken_bytes;
  arena.taken_bytes += capacity;
  return block;
}

void* DeviceMemory::allocate(size_t bytes) {
  const size_t capacity = round_up(2 * kZone + bytes, is_guarded_ ? kPage : kZone);
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
  if (!is_guarded_) {
    permit(freed.begin, freed.capacity);
    std::free(freed.begin);
    return;
  }
  forbid(freed.begin, freed.capacity);
  ::madvise(freed.begin, freed.capacity, MADV_DONTNEED);
  freed_.emplace(freed.capacity, freed.begin);
}

void DeviceMemory::protect(bool is_open) {
  const int protection = is_open ? PROT_READ | PROT_WRITE : PROT_NONE;
  for (const Arena& arena : arenas_) {
    PL_CHECK(::mprotect(arena.pages, arena.taken_bytes, protection) == 0,
             "mprotect of guarded memory");
  }
}

std::span<const std::byte> DeviceMemory::block_at(const void* address) const {
  const auto* const wanted = static_cast<const std::byte*>(address);
  const auto next = blocks_.upper_bound(wanted);
  if (next == blocks_.begin()) return {};
  const auto& [begin, block] = *std::prev(next);
  if (static_cast<size_t>(wanted - begin) >= block.bytes) return {};
  return {begin, block.bytes};
}

void DeviceMemory::check_range(std::string_view what, const void* address, size_t bytes) const {
  if (bytes == 0) return;
  const std::span<const std::byte> block = block_at(address);
  if (block.empty()) {
    throw Error(ErrorCode::internal,
                fmt::format("{}: {} bytes that are not the device's memory", what, bytes));
  }
  const auto offset = static_cast<size_t>(static_cast<const std::byte*>(address) - block.data());
  if (bytes <= block.size() - offset) return;
  throw Error(ErrorCode::internal, fmt::format("{}: {} bytes at offset {} of a block of {}", what,
                                               bytes, offset, block.size()));
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
