// SharedMemory is a block's shared memory. Behind it is a zone that nothing may write; ASan sees
// its end itself.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>

#include "kernels/cuda/emulation/fiber.h"

namespace paceline::cuda::emulation {

class SharedMemory {
 public:
  SharedMemory(size_t bytes, size_t alignment)
      : bytes_(bytes),
        alignment_(std::align_val_t{alignment < kLeastAlignment ? kLeastAlignment : alignment}),
        memory_(::operator new(bytes + kZone, alignment_)) {}
  ~SharedMemory() { ::operator delete(memory_, alignment_); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // NaN in every float type, -1 in integers.
  void poison() { std::memset(memory_, kPoison, bytes_ + kZone); }
  // Whether nothing was written behind it since.
  bool is_intact() const {
    const auto* const zone = static_cast<const unsigned char*>(memory_) + bytes_;
    return std::all_of(zone, zone + kZone, [](unsigned char byte) { return byte == kPoison; });
  }
  void* get() const { return memory_; }

 private:
  static constexpr size_t kLeastAlignment = 128;  // as on the device
  static constexpr unsigned char kPoison = 0xFF;
#if defined(PACELINE_ASAN_FIBERS)
  static constexpr size_t kZone = 0;
#else
  static constexpr size_t kZone = 256;
#endif

  size_t bytes_;
  std::align_val_t alignment_;
  void* memory_;
};

}  // namespace paceline::cuda::emulation
