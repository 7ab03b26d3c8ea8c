// New arrays of given and of random values.
#include "autodiff/new_arrays.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "arrays/array_state.h"
#include "base/error.h"

namespace paceline::arrays {
namespace {

autodiff::RandomKey inner(RandomKey key) { return {.seed = key.seed, .counter = key.counter}; }

}  // namespace

Array zeros(const Shape& shape, DType dtype) {
  return wrapped(
      autodiff::zeros(array_context(), checked_shape("zeros", shape), inner_dtype("zeros", dtype)));
}

Array ones(const Shape& shape, DType dtype) { return full(shape, 1.0f, dtype); }

Array full(const Shape& shape, float value, DType dtype) {
  const Extents extents = checked_shape("full", shape);
  autodiff::Array array(array_context(), inner_dtype("full", dtype), extents);
  const Tensor out = array.writable();
  if (dtype == DType::int32) {
    if (value != std::trunc(value) || std::fabs(value) >= 0x1.0p31f) {
      throw error_of(ErrorCode::invalid, "full: {} in an int32 array: expected a 32-bit integer",
                     value);
    }
    std::fill_n(out.elements<int32_t>(), array.num_elements(), static_cast<int32_t>(value));
  } else if (dtype == DType::mask) {
    std::fill_n(out.elements<int8_t>(), array.num_elements(), static_cast<int8_t>(value != 0.0f));
  } else {
    with_float_dtype(array.dtype(), [&]<class T>() {
      std::fill_n(out.elements<T>(), array.num_elements(), from_float<T>(value));
    });
  }
  return wrapped(std::move(array));
}

Array integers(std::span<const int32_t> values, const Shape& shape) {
  return wrapped(
      autodiff::from_integers(array_context(), values, checked_shape("integers", shape)));
}

Array integers(std::initializer_list<int32_t> values, const Shape& shape) {
  return integers(std::span<const int32_t>(values.begin(), values.size()), shape);
}

Array mask(std::span<const uint8_t> values, const Shape& shape) {
  return wrapped(autodiff::from_mask(array_context(), values, checked_shape("mask", shape)));
}

Array mask(std::initializer_list<uint8_t> values, const Shape& shape) {
  return mask(std::span<const uint8_t>(values.begin(), values.size()), shape);
}

RandomKey RandomKey::after(const Array& drawn) const {
  return {.seed = seed, .counter = counter + autodiff::counters_of(drawn.num_elements())};
}

Array uniform(const Shape& shape, RandomKey key, float low, float high, DType dtype) {
  return wrapped(autodiff::uniform(array_context(), checked_shape("uniform", shape), inner(key),
                                   low, high, inner_float("uniform", dtype)));
}

Array normal(const Shape& shape, RandomKey key, float mean, float deviation, DType dtype) {
  return wrapped(autodiff::normal(array_context(), checked_shape("normal", shape), inner(key), mean,
                                  deviation, inner_float("normal", dtype)));
}

Array kaiming_normal(const Shape& shape, RandomKey key, float gain, DType dtype) {
  return wrapped(autodiff::kaiming_normal(array_context(), checked_shape("kaiming_normal", shape),
                                          inner(key), gain, inner_float("kaiming_normal", dtype)));
}

Array categorical(const Array& logits, RandomKey key) {
  return wrapped(autodiff::categorical(inner("categorical", logits), inner(key)));
}

}  // namespace paceline::arrays
