// ScratchBuffer is a device's memory that operations use during one call. It grows to the largest
// need and counts how often scratch has moved: a graph holds its address.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/buffer.h"

namespace paceline::cuda {

// The memory that all scratch of a backend comes from.
struct ScratchMemory {
  Memory& memory;
  int64_t num_moves = 0;  // of any of its buffers
};

class ScratchBuffer {
 public:
  explicit ScratchBuffer(ScratchMemory& source) : source_(&source) {}

  // At least `bytes`; earlier contents are lost where it moves.
  void* reserve(size_t bytes) {
    if (buffer_.size_bytes() < bytes) {
      ++source_->num_moves;
      buffer_ = Buffer();
      buffer_ = Buffer(source_->memory, bytes);
    }
    return buffer_.get();
  }
  template <class T>
  T* reserve_as(int64_t count) {
    return static_cast<T*>(reserve(static_cast<size_t>(count) * sizeof(T)));
  }

 private:
  ScratchMemory* source_;
  Buffer buffer_;
};

}  // namespace paceline::cuda
