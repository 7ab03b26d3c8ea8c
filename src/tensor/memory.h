// Memory hands out accounted, 64-byte aligned blocks of one device's memory and caches freed ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace paceline {

// The source of a Memory's blocks: by default the system.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  // Zeroed and 64-byte aligned; nullptr with errno set when there is none.
  virtual void* take(size_t capacity) = 0;
  virtual void give_back(void* block, size_t capacity) noexcept = 0;
  // A block is about to be cached, and poisoned under AddressSanitizer, until it is reused.
  virtual void will_cache() noexcept {}
  // Clears a block before it is reused.
  virtual void clear(void* block, size_t capacity) = 0;
};

struct MemoryStats {
  size_t active_bytes = 0;  // in use
  size_t peak_bytes = 0;    // the most in use since reset_peak
  size_t cached_bytes = 0;  // freed by their owners, kept for reuse
};

// What a new block holds: zeros, or anything, for an owner that writes all of it before it reads.
enum class Contents : bool { zeroed, undefined };

// Thread-safe. Blocks of 128 KiB and more are advised to use huge pages (system_memory.h).
// A Memory must outlive its Buffers.
class Memory {
 public:
  Memory();
  // The source must outlive it.
  explicit Memory(MemorySource& source);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Throws Error exhausted with the requested and active bytes and the limit, when
  // the hard limit would be exceeded even with an empty cache, or when the system has no memory.
  void* allocate(size_t bytes, Contents contents = Contents::zeroed);
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
