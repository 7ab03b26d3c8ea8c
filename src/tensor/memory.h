// Memory hands out accounted, 64-byte aligned blocks of one device's memory and caches freed ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace paceline {

struct MemoryStats {
  size_t active_bytes = 0;  // handed out now
  size_t peak_bytes = 0;    // the most that was ever handed out since reset_peak
  size_t cached_bytes = 0;  // freed by their owners, kept for reuse
};

// Thread-safe. Blocks of 2 MiB and more are mapped on their own and advised to use huge pages.
// A Memory must outlive its Buffers.
class Memory {
 public:
  Memory();
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Zeroed memory. Throws Error exhausted, saying asked, active and limit, when active + cached
  // bytes would pass the hard limit even after the cache was emptied, or when the system has none.
  void* allocate(size_t bytes);
  void release(void* block, size_t bytes) noexcept;

  MemoryStats stats() const;
  void reset_peak();
  // Returns every cached block to the system.
  void clear_cache();
  // Soft: freed blocks beyond this many bytes go back to the system at once. Returns the old limit.
  size_t set_cache_limit(size_t bytes);
  // Hard: allocate() throws beyond it. SIZE_MAX means none. Returns the old limit.
  size_t set_memory_limit(size_t bytes);
  // Locks pages of blocks allocated from now on, and of those active, into RAM (mlock). Returns the
  // number of bytes locked; throws Error exhausted with the system's reason (ulimit -l) when
  // refused.
  size_t lock_all();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline
