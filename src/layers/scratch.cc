#include "layers/scratch.h"

#include <algorithm>

namespace paceline {

namespace {
constexpr size_t kAlignment = 64;
}

size_t scratch_bytes(DType dtype, int64_t num_elements) {
  const size_t bytes = static_cast<size_t>(num_elements) * dtype_bytes(dtype);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

Tensor Scratch::take(DType dtype, Extents shape) {
  int64_t num_elements = 1;
  for (const int64_t size : shape) num_elements *= size;
  const size_t bytes = scratch_bytes(dtype, num_elements);
  PL_CHECK(used_ + bytes <= buffer_.size_bytes(), "scratch arena too small for this batch");
  Tensor tensor(static_cast<char*>(buffer_.get()) + used_, dtype, shape);
  used_ += bytes;
  high_water_ = std::max(high_water_, used_);
  return tensor;
}

}  // namespace paceline
