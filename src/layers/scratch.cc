#include "layers/scratch.h"

#include <algorithm>

#include "kernels/backend.h"

namespace paceline {

namespace {
constexpr size_t kAlignment = 64;
constexpr int64_t kLineFloats = 16;
}  // namespace

int64_t row_stride(int64_t width) {
  return ((width + kLineFloats - 1) / kLineFloats | 1) * kLineFloats;
}

size_t scratch_bytes(DType dtype, int64_t num_elements) {
  const size_t bytes = static_cast<size_t>(num_elements) * dtype_bytes(dtype);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

OwnedTensor allocate_rows(Memory& memory, int64_t rows, int64_t width) {
  OwnedTensor tensor = allocate_tensor(memory, DType::f32, {rows, row_stride(width)});
  tensor.view = tensor.view.slice(1, 0, width);
  return tensor;
}

OwnedTensor write_vector(Backend& backend, std::span<const float> elements) {
  OwnedTensor vector = allocate_tensor(backend.memory(), DType::f32, {std::ssize(elements)});
  backend.write(elements, vector.view);
  return vector;
}

std::vector<float> elements_of(const OwnedTensor& vector) {
  const auto* const begin = vector.view.elements<float>();
  return {begin, begin + vector.view.num_elements()};
}

Tensor Scratch::take(DType dtype, Extents shape) {
  int64_t num_elements = 1;
  for (const int64_t size : shape) num_elements *= size;
  const size_t bytes = scratch_bytes(dtype, num_elements);
  char* place = nullptr;
  if (buffer_) {
    PL_CHECK(used_ + bytes <= buffer_->size_bytes(), "scratch arena too small for this batch");
    place = static_cast<char*>(buffer_->get()) + used_;
  }
  used_ += bytes;
  most_used_ = std::max(most_used_, used_);
  return Tensor(place, dtype, shape);
}

Tensor Scratch::take_rows(int64_t rows, int64_t width) {
  return take(DType::f32, {rows, row_stride(width)}).slice(1, 0, width);
}

}  // namespace paceline
