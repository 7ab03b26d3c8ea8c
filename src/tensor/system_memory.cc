#include "tensor/system_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>

namespace paceline {
namespace {

constexpr size_t kAlignment = 64;
// The smallest medium block. AddressSanitizer checks only what malloc hands out, so it gets more.
#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kMediumBytes = kHugePageBytes;
#else
constexpr size_t kMediumBytes = size_t{128} << 10;
#endif
constexpr size_t kFirstRegionBytes = 2 * kHugePageBytes;
constexpr size_t kMostRegionBytes = 32 * kHugePageBytes;

enum class Kind : uint8_t { small, medium, large };

Kind kind_of(size_t capacity) {
  if (capacity >= kHugePageBytes) return Kind::large;
  return capacity >= kMediumBytes ? Kind::medium : Kind::small;
}

// Zeroed pages from the system, or nullptr: mapped with room for the alignment, then trimmed.
std::byte* map_pages(size_t capacity) {
  void* const mapped = ::mmap(nullptr, capacity + kHugePageBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const first = static_cast<std::byte*>(mapped);
  const size_t head =
      (kHugePageBytes - reinterpret_cast<uintptr_t>(first) % kHugePageBytes) % kHugePageBytes;
  std::byte* const block = first + head;
  if (head > 0) ::munmap(first, head);
  ::munmap(block + capacity, kHugePageBytes - head);
  ::madvise(block, capacity, MADV_HUGEPAGE);  // advice: without huge pages it works all the same
  return block;
}

// Gives whole pages back: they read as zeros from now on. Locked pages have to be unlocked first.
void clear_pages(void* pages, size_t bytes) {
  if (::madvise(pages, bytes, MADV_DONTNEED) == 0) return;
  ::munlock(pages, bytes);
  if (::madvise(pages, bytes, MADV_DONTNEED) != 0) std::memset(pages, 0, bytes);
}

// Blocks of whole pages, one behind the other. The pages of a freed block go back to the system at
// once, its addresses when all blocks of its region are free.
class Regions {
 public:
  void* take(size_t capacity) {
    const std::lock_guard lock(mutex_);
    if (newest_ == nullptr || newest_->capacity - newest_->used < capacity) {
      if (!add_region()) return nullptr;
    }
    std::byte* const block = newest_->first + newest_->used;
    newest_->used += capacity;
    ++newest_->num_blocks;
    return block;
  }

  void give_back(void* block, size_t capacity) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = std::prev(regions_.upper_bound(static_cast<std::byte*>(block)));
    Region& region = found->second;
    clear_pages(block, capacity);
    if (--region.num_blocks > 0) return;
    region.used = 0;
    if (&region == newest_) return;
    ::munmap(region.first, region.capacity);
    regions_.erase(found);
  }

 private:
  struct Region {
    std::byte* first = nullptr;
    size_t capacity = 0;
    size_t used = 0;  // from the first byte on
    size_t num_blocks = 0;
  };

  bool add_region() {
    std::byte* const first = map_pages(next_capacity_);
    if (first == nullptr) return false;
    try {
      newest_ = &regions_.emplace(first, Region{.first = first, .capacity = next_capacity_})
                     .first->second;
    } catch (const std::bad_alloc&) {
      ::munmap(first, next_capacity_);
      return false;
    }
    next_capacity_ = std::min(2 * next_capacity_, kMostRegionBytes);
    return true;
  }

  std::mutex mutex_;
  std::map<std::byte*, Region> regions_;  // by first byte
  Region* newest_ = nullptr;              // new blocks come from it
  size_t next_capacity_ = kFirstRegionBytes;
};

class SystemMemory final : public MemorySource {
 public:
  void* take(size_t capacity) override {
    switch (kind_of(capacity)) {
      case Kind::large:
        return map_pages(capacity);
      case Kind::medium:
        return regions_.take(capacity);
      case Kind::small:
        break;
    }
    void* const block = std::aligned_alloc(kAlignment, capacity);
    if (block != nullptr) std::memset(block, 0, capacity);
    return block;
  }
  void give_back(void* block, size_t capacity) noexcept override {
    switch (kind_of(capacity)) {
      case Kind::large:
        ::munmap(block, capacity);
        return;
      case Kind::medium:
        return regions_.give_back(block, capacity);
      case Kind::small:
        std::free(block);
    }
  }
  void clear(void* block, size_t capacity) override { std::memset(block, 0, capacity); }

 private:
  Regions regions_;
};

}  // namespace

size_t system_capacity(size_t bytes) {
  const size_t unit = bytes >= kMediumBytes ? kPageBytes : kAlignment;
  return (std::max<size_t>(bytes, 1) + unit - 1) / unit * unit;
}

bool same_system_kind(size_t capacity, size_t other) { return kind_of(capacity) == kind_of(other); }

MemorySource& system_memory() {
  static SystemMemory source;
  return source;
}

}  // namespace paceline
