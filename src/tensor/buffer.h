// Buffer owns one block of accounted memory, or refers to bytes owned by another object.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "tensor/memory.h"

namespace paceline {

class Buffer {
 public:
  Buffer() = default;
  // Throws what Memory::allocate throws. `memory` must outlive the buffer.
  Buffer(Memory& memory, size_t bytes, Contents contents = Contents::zeroed)
      : memory_(&memory), bytes_(bytes), block_(memory.allocate(bytes, contents)) {}
  // Refers to bytes that outlive it and may be read-only (weights of a mapped file); they are
  // neither accounted nor written.
  static Buffer lent(std::span<const std::byte> bytes) {
    Buffer buffer;
    buffer.bytes_ = bytes.size();
    buffer.block_ = const_cast<std::byte*>(bytes.data());
    return buffer;
  }
  ~Buffer() {
    if (memory_ != nullptr && block_ != nullptr) memory_->release(block_, bytes_);
  }
  Buffer(Buffer&& other) noexcept
      : memory_(other.memory_),
        bytes_(std::exchange(other.bytes_, 0)),
        block_(std::exchange(other.block_, nullptr)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    std::swap(block_, other.block_);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* get() const { return block_; }
  size_t size_bytes() const { return bytes_; }

 private:
  Memory* memory_ = nullptr;
  size_t bytes_ = 0;
  void* block_ = nullptr;
};

}  // namespace paceline
