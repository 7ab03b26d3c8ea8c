#include "autodiff/shape_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace paceline::autodiff {

void throw_shapes(std::string_view operation, const Arrays& found, std::string_view expected) {
  std::string shapes;
  for (const Array& array : found) {
    shapes += (shapes.empty() ? "" : " and ") + to_string(array.shape());
  }
  throw Error(ErrorCode::invalid, fmt::format("{}: {}: expected {}", operation, shapes, expected));
}

void check_float(std::string_view operation, const Array& array) {
  if (is_float(array.dtype())) return;
  throw Error(ErrorCode::invalid,
              fmt::format("{}: {} {}: expected float32, float16 or bfloat16", operation,
                          dtype_name(array.dtype()), to_string(array.shape())));
}

void check_num_elements(std::string_view operation, const Extents& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) {
    if (size == 0) continue;
    const bool overflows = __builtin_mul_overflow(count, size, &count);
    if (!overflows && count <= kMaxElements) continue;
    throw Error(ErrorCode::exhausted, fmt::format("{}: an array of shape {}: at most {} elements",
                                                  operation, to_string(shape), kMaxElements));
  }
}

int checked_axis(std::string_view operation, const Array& array, int axis) {
  const int index = axis < 0 ? array.rank() + axis : axis;
  if (index >= 0 && index < array.rank()) return index;
  throw Error(ErrorCode::invalid,
              fmt::format("{}: axis {} of {}: expected one of its {} axes", operation, axis,
                          to_string(array.shape()), array.rank()));
}

Extents broadcast_shape(std::string_view operation, const Arrays& arrays) {
  int rank = 0;
  for (const Array& array : arrays) rank = std::max(rank, array.rank());
  std::array<int64_t, kMaxRank> sizes;
  sizes.fill(1);
  Extents shape(std::span<const int64_t>(sizes.data(), static_cast<size_t>(rank)));
  for (const Array& array : arrays) {
    for (int i = 0; i < array.rank(); ++i) {
      int64_t& size = shape[rank - array.rank() + i];
      if (array.shape()[i] == 1) continue;
      if (size != 1 && size != array.shape()[i]) {
        throw_shapes(operation, arrays,
                     "shapes that broadcast: sizes equal or 1, from the last dimension on");
      }
      size = array.shape()[i];
    }
  }
  check_num_elements(operation, shape);
  return shape;
}

DType common_dtype(const Arrays& arrays) {
  for (const Array& array : arrays) {
    if (array.dtype() != arrays.front().dtype()) return DType::f32;
  }
  return arrays.front().dtype();
}

}  // namespace paceline::autodiff
