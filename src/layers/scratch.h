// Scratch is the arena of a forward's activations: allocated once, used like a stack. A dry run of
// what a forward takes finds its size.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace paceline {

class Backend;

class Scratch {
 public:
  Scratch(Memory& memory, size_t capacity_bytes) : buffer_(std::in_place, memory, capacity_bytes) {}
  // For a dry run: its tensors have shapes and no memory.
  Scratch() = default;

  // The most that was ever taken at the same time.
  size_t most_used_bytes() const { return most_used_; }

  // An uninitialised contiguous tensor, valid until the Frame it was taken in ends.
  Tensor take(DType dtype, Extents shape);

  // The same for [rows, width] with rows row_stride(width) elements apart.
  Tensor take_rows(int64_t rows, int64_t width);

  // Its destructor returns everything taken since its construction.
  class Frame {
   public:
    explicit Frame(Scratch& scratch) : scratch_(scratch), mark_(scratch.used_) {}
    ~Frame() { scratch_.used_ = mark_; }
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;

   private:
    Scratch& scratch_;
    size_t mark_;
  };

 private:
  std::optional<Buffer> buffer_;  // nothing in a dry run
  size_t used_ = 0, most_used_ = 0;
};

// An odd number of cache lines, so that rows a power of two wide don't share a few cache sets.
int64_t row_stride(int64_t width);

// Like take_rows(), but with memory of its own.
OwnedTensor allocate_rows(Memory& memory, int64_t rows, int64_t width);

// A vector with these elements in the backend's memory.
OwnedTensor write_vector(Backend& backend, std::span<const float> elements);
// Those of a vector in the CPU's memory.
std::vector<float> elements_of(const OwnedTensor& vector);

// The bytes that take() uses for this many elements.
size_t scratch_bytes(DType dtype, int64_t num_elements);

}  // namespace paceline
