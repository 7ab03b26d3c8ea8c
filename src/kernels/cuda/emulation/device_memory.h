// DeviceMemory is the emulated device's memory: blocks of the CPU's, filled with NaNs, with zones
// around them that nothing may write.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string_view>
#include <vector>

namespace paceline::cuda::emulation {

class DeviceMemory {
 public:
  // Guarded memory can be read and written only while an Access to it lives.
  DeviceMemory(size_t total_bytes, bool is_guarded);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  size_t total_bytes() const { return total_bytes_; }
  size_t used_bytes() const { return used_bytes_; }

  // 256-byte aligned. Throws Error exhausted.
  void* allocate(size_t bytes);
  void release(void* block) noexcept;

  class Access {
   public:
    explicit Access(DeviceMemory& memory) : memory_(memory) { memory_.protect(true); }
    ~Access() { memory_.protect(false); }
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;

   private:
    DeviceMemory& memory_;
  };

  // The block that has this address; empty: none has it.
  std::span<const std::byte> block_at(const void* address) const;
  // Throws Error internal unless [address, address + bytes) lies in one block.
  void check_range(std::string_view what, const void* address, size_t bytes) const;
  // Throws Error internal where `what` wrote around a block. Needs Access.
  void check_zones(std::string_view what);

 private:
  struct Block {
    size_t bytes = 0;
    std::byte* begin = nullptr;  // of the zone before it
    size_t capacity = 0;         // with both zones
  };

  // Pages of guarded memory, from which blocks are taken one behind the other.
  struct Arena {
    std::byte* pages = nullptr;
    size_t bytes = 0;
    size_t taken_bytes = 0;
  };

  std::byte* take(size_t capacity);
  std::byte* take_guarded(size_t capacity);
  void protect(bool is_open);

  size_t total_bytes_;
  size_t used_bytes_ = 0;
  std::map<const std::byte*, Block> blocks_;  // by address
  bool is_guarded_;
  std::vector<Arena> arenas_;
  std::multimap<size_t, std::byte*> freed_;  // guarded blocks by capacity
};

}  // namespace paceline::cuda::emulation
