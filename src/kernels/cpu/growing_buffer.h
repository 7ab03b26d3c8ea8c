// GrowingBuffer is memory that a kernel uses during one call. It grows to the largest need and
// keeps that size.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/buffer.h"

namespace paceline {

class GrowingBuffer {
 public:
  explicit GrowingBuffer(Memory& memory) : memory_(&memory) {}

  // At least `bytes`, 64-byte aligned; earlier contents are lost.
  void* reserve(size_t bytes) {
    if (buffer_.size_bytes() < bytes) {
      buffer_ = Buffer();
      buffer_ = Buffer(*memory_, bytes);
    }
    return buffer_.get();
  }
  template <class T>
  T* reserve_as(int64_t count) {
    return static_cast<T*>(reserve(static_cast<size_t>(count) * sizeof(T)));
  }

 private:
  Memory* memory_;
  Buffer buffer_;
};

}  // namespace paceline
