#include "tensor/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "tensor/system_memory.h"

#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size)
#define ASAN_UNPOISON_MEMORY_REGION(address, size)
#endif

namespace paceline {
namespace {

constexpr size_t kDefaultCacheLimit = size_t{256} << 20;
// A cached block is reused if at most this fraction of the request stays unused.
constexpr size_t kReuseSlackDivisor = 8;

[[noreturn]] void throw_lock_refused(size_t bytes, int reason) {
  throw Error(
      ErrorCode::exhausted,
      fmt::format("memory: {} bytes can't be locked into RAM: {}; raise the limit of locked "
                  "memory (ulimit -l) or don't ask for it",
                  bytes, std::strerror(reason)));
}

// Freed blocks: found by size, evicted by age.
class BlockCache {
 public:
  explicit BlockCache(MemorySource& source) : source_(source) {}

  size_t num_bytes() const { return num_bytes_; }

  // Takes a block of at least `capacity` bytes and little more; stores its size in `capacity`.
  void* take(size_t& capacity) {
    const auto found = by_size_.lower_bound({capacity, 0});
    if (found == by_size_.end()) return nullptr;
    const auto [size, age] = found->first;
    if (size - capacity > capacity / kReuseSlackDivisor) return nullptr;
    // Each kind of block is freed differently; the size distinguishes them.
    if (!same_system_kind(size, capacity)) return nullptr;
    void* const block = found->second;
    by_size_.erase(found);
    by_age_.erase(age);
    num_bytes_ -= size;
    capacity = size;
    return block;
  }

  void put(void* block, size_t capacity) {
    const uint64_t age = next_age_++;
    by_age_.emplace(age, capacity);
    try {
      by_size_.emplace(std::pair(capacity, age), block);
    } catch (...) {
      by_age_.erase(age);
      throw;
    }
    num_bytes_ += capacity;
    ASAN_POISON_MEMORY_REGION(block, capacity);
  }

  // Frees the oldest blocks until at most `limit` bytes are left.
  void shrink_to(size_t limit) {
    while (num_bytes_ > limit) {
      const auto oldest = by_age_.begin();
      const auto found = by_size_.find({oldest->second, oldest->first});
      give_back(found->second, oldest->second);
      num_bytes_ -= oldest->second;
      by_size_.erase(found);
      by_age_.erase(oldest);
    }
  }

  void give_back(void* block, size_t capacity) noexcept {
    ASAN_UNPOISON_MEMORY_REGION(block, capacity);
    source_.give_back(block, capacity);
  }

 private:
  MemorySource& source_;
  std::map<std::pair<size_t, uint64_t>, void*> by_size_;  // (capacity, age) -> block
  std::map<uint64_t, size_t> by_age_;                     // age -> capacity
  uint64_t next_age_ = 1;
  size_t num_bytes_ = 0;
};

}  // namespace

struct Memory::State {
  explicit State(MemorySource& from) : source(from), cache(from) {}

  MemorySource& source;
  mutable std::mutex mutex;
  std::unordered_map<void*, size_t> active;  // block -> capacity
  BlockCache cache;
  MemoryStats stats;
  size_t cache_limit = kDefaultCacheLimit;
  size_t memory_limit = SIZE_MAX;
  bool lock_pages = false;

  [[noreturn]] void throw_exhausted(size_t bytes, const std::string& why) const {
    throw Error(ErrorCode::exhausted,
                fmt::format("memory: {} bytes are needed beside {} in use, {}", bytes,
                            stats.active_bytes, why));
  }

  // A new block within the limit; evicts cached blocks if necessary.
  void* take_new(size_t bytes, size_t capacity) {
    if (stats.active_bytes > memory_limit || capacity > memory_limit - stats.active_bytes) {
      throw_exhausted(bytes, fmt::format("the limit is {} (--memory-limit); a smaller context or "
                                         "batch needs less",
                                         memory_limit));
    }
    cache.shrink_to(std::min(cache.num_bytes(), memory_limit - stats.active_bytes - capacity));
    void* block = source.take(capacity);
    if (block == nullptr) {
      cache.shrink_to(0);
      block = source.take(capacity);
    }
    if (block == nullptr) {
      throw_exhausted(bytes, fmt::format("the system gives no more: {}; a smaller context "
                                         "or batch needs less",
                                         std::strerror(errno)));
    }
    return block;
  }
};

Memory::Memory() : Memory(system_memory()) {}

Memory::Memory(MemorySource& source) : state_(std::make_unique<State>(source)) {}

Memory::~Memory() {
  PL_CHECK(state_->active.empty(), "a buffer outlives its memory");
  clear_cache();
}

void* Memory::allocate(size_t bytes, Contents contents) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  if (bytes > PTRDIFF_MAX - 2 * kHugePageBytes)
    state.throw_exhausted(bytes, "more than can be addressed");
  size_t capacity = system_capacity(bytes);
  void* block = state.cache.take(capacity);
  const bool reused = block != nullptr;
  if (!reused) block = state.take_new(bytes, capacity);
  if (state.lock_pages && ::mlock(block, capacity) != 0) {
    const int reason = errno;
    state.cache.give_back(block, capacity);
    throw_lock_refused(capacity, reason);
  }
  try {
    state.active.emplace(block, capacity);
  } catch (const std::bad_alloc&) {
    state.cache.give_back(block, capacity);
    state.throw_exhausted(bytes, "no memory to account for them");
  }
  state.stats.active_bytes += capacity;
  state.stats.peak_bytes = std::max(state.stats.peak_bytes, state.stats.active_bytes);
  lock.unlock();
  ASAN_UNPOISON_MEMORY_REGION(block, capacity);
  if (reused && contents == Contents::zeroed) state.source.clear(block, capacity);
  ASAN_POISON_MEMORY_REGION(static_cast<std::byte*>(block) + bytes, capacity - bytes);
  return block;
}

void Memory::release(void* block, size_t bytes) noexcept {
  State& state = *state_;
  state.source.will_cache();
  const std::lock_guard lock(state.mutex);
  const auto found = state.active.find(block);
  PL_CHECK(found != state.active.end(), "a block freed twice, or of another memory");
  const size_t capacity = found->second;
  PL_CHECK(bytes <= capacity, "a block freed with a size it doesn't have");
  state.active.erase(found);
  state.stats.active_bytes -= capacity;
  if (capacity > state.cache_limit) {
    state.cache.give_back(block, capacity);
    return;
  }
  try {
    state.cache.put(block, capacity);
  } catch (const std::bad_alloc&) {
    state.cache.give_back(block, capacity);
  }
  state.cache.shrink_to(state.cache_limit);
}

MemoryStats Memory::stats() const {
  const std::lock_guard lock(state_->mutex);
  MemoryStats stats = state_->stats;
  stats.cached_bytes = state_->cache.num_bytes();
  return stats;
}

void Memory::reset_peak() {
  const std::lock_guard lock(state_->mutex);
  state_->stats.peak_bytes = state_->stats.active_bytes;
}

void Memory::clear_cache() {
  const std::lock_guard lock(state_->mutex);
  state_->cache.shrink_to(0);
}

size_t Memory::set_cache_limit(size_t bytes) {
  const std::lock_guard lock(state_->mutex);
  state_->cache.shrink_to(bytes);
  return std::exchange(state_->cache_limit, bytes);
}

size_t Memory::set_memory_limit(size_t bytes) {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  // Active and cached bytes together stay within the limit, so reusing a block needs no check.
  state.cache.shrink_to(bytes - std::min(bytes, state.stats.active_bytes));
  return std::exchange(state.memory_limit, bytes);
}

size_t Memory::lock_all() {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  size_t locked_bytes = 0;
  for (const auto& [block, capacity] : state.active) {
    if (::mlock(block, capacity) != 0) {
      const int reason = errno;
      // All or nothing. Pages shared by small blocks lose their lock at the first of them.
      for (const auto& [other, size] : state.active) ::munlock(other, size);
      throw_lock_refused(capacity, reason);
    }
    locked_bytes += capacity;
  }
  state.lock_pages = true;
  return locked_bytes;
}

}  // namespace paceline
