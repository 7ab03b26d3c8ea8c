// SharedMemory is a block's shared memory, an allocation of its own size, so that ASan sees its
// end.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>

namespace paceline::cuda::emulation {

class SharedMemory {
 public:
  SharedMemory(size_t bytes, size_t alignment)
      : bytes_(bytes),
        alignment_(std::align_val_t{alignment < kLeastAlignment ? kLeastAlignment : alignment}),
        memory_(::operator new(bytes, alignment_)) {}
  ~SharedMemory() { ::operator delete(memory_, alignment_); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // NaN in every float type, -1 in integers.
  void poison() { std::memset(memory_, 0xFF, bytes_); }
  void* get() const { return memory_; }

 private:
  static constexpr size_t kLeastAlignment = 128;  // as on the device

  size_t bytes_;
  std::align_val_t alignment_;
  void* memory_;
};

}  // namespace paceline::cuda::emulation
