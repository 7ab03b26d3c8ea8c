#include "tensor/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

namespace paceline {
namespace {

// Checks that no size and no number of elements of any part of the shape exceeds 64 bits.
void check_shape(const Extents& shape) {
  int64_t product = 1;
  for (int64_t size : shape) {
    PL_CHECK(size >= 0, "negative size in shape " + to_string(shape));
    if (size == 0) continue;
    PL_CHECK(!__builtin_mul_overflow(product, size, &product),
             "shape too large: " + to_string(shape));
  }
}

Extents row_major_strides(const Extents& shape) {
  Extents strides = shape;
  int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= std::max<int64_t>(shape[i], 1);
  }
  return strides;
}

int checked_dimension(const Tensor& tensor, int dimension) {
  const int index = dimension < 0 ? tensor.rank() + dimension : dimension;
  PL_CHECK(index >= 0 && index < tensor.rank(),
           fmt::format("dimension {} of shape {}", dimension, to_string(tensor.shape())));
  return index;
}

template <class From, class To>
To convert(From value) {
  if constexpr (std::is_same_v<From, To>) {
    return value;
  } else if constexpr (std::is_same_v<To, float>) {
    return to_float(value);
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    return to_bfloat16(to_float(value));
  } else {
    return to_float16(to_float(value));
  }
}

// Copies `count` elements, `from_stride` and `to_stride` apart.
template <class From, class To>
void copy_line(const From* from, int64_t from_stride, To* to, int64_t to_stride, int64_t count) {
  if (std::is_same_v<From, To> && from_stride == 1 && to_stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(To));
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    to[i * to_stride] = convert<From, To>(from[i * from_stride]);
  }
}

template <class From, class To>
class Copy {
 public:
  Copy(const Tensor& from, const Tensor& to) : from_(from), to_(to) {}

  void run() const {
    const From* from = from_.elements<From>();
    To* to = to_.elements<To>();
    if (from_.rank() == 0 || (from_.is_contiguous() && to_.is_contiguous())) {
      copy_line(from, 1, to, 1, from_.num_elements());
    } else {
      copy_dimension(0, from, to);
    }
  }

 private:
  void copy_dimension(int dimension, const From* from, To* to) const {
    const int64_t size = from_.size(dimension);
    const int64_t from_stride = from_.stride(dimension), to_stride = to_.stride(dimension);
    if (dimension == from_.rank() - 1) {
      copy_line(from, from_stride, to, to_stride, size);
      return;
    }
    for (int64_t i = 0; i < size; ++i) {
      copy_dimension(dimension + 1, from + i * from_stride, to + i * to_stride);
    }
  }

  const Tensor& from_;
  const Tensor& to_;
};

}  // namespace

Extents::Extents(std::span<const int64_t> values) : rank_(static_cast<int>(values.size())) {
  PL_CHECK(values.size() <= kMaxRank, "more dimensions than a tensor can have");
  std::copy(values.begin(), values.end(), values_.begin());
}

bool Extents::operator==(const Extents& other) const {
  return std::equal(begin(), end(), other.begin(), other.end());
}

Tensor::Tensor(void* elements, DType dtype, Extents shape, Device device)
    : elements_(elements), dtype_(dtype), device_(device), shape_(shape) {
  check_shape(shape);
  strides_ = row_major_strides(shape);
}

Tensor::Tensor(void* elements, DType dtype, Extents shape, Extents strides, Device device)
    : elements_(elements), dtype_(dtype), device_(device), shape_(shape), strides_(strides) {
  check_shape(shape);
  PL_CHECK(shape.rank() == strides.rank(), "a shape and strides of different rank");
}

int64_t Tensor::num_elements() const {
  int64_t product = 1;
  for (int64_t size : shape_) product *= size;
  return product;
}

std::span<const std::byte> Tensor::bytes() const {
  PL_CHECK(is_contiguous(), "bytes of a tensor of shape " + to_string(shape_) + " with gaps");
  return {static_cast<const std::byte*>(elements_), size_bytes()};
}

bool Tensor::is_contiguous() const {
  if (empty()) return true;
  int64_t expected = 1;
  for (int i = rank() - 1; i >= 0; --i) {
    if (shape_[i] == 1) continue;  // its stride is unused
    if (strides_[i] != expected) return false;
    expected *= shape_[i];
  }
  return true;
}

Tensor Tensor::reshape(Extents shape) const {
  PL_CHECK(is_contiguous(), "reshape of a view that isn't contiguous");
  const Tensor result(elements_, dtype_, shape, device_);
  PL_CHECK(result.num_elements() == num_elements(),
           fmt::format("reshape of {} to {}", to_string(shape_), to_string(shape)));
  return result;
}

Tensor Tensor::transpose(int first, int second) const {
  first = checked_dimension(*this, first);
  second = checked_dimension(*this, second);
  Tensor result = *this;
  std::swap(result.shape_[first], result.shape_[second]);
  std::swap(result.strides_[first], result.strides_[second]);
  return result;
}

Tensor Tensor::slice(int dimension, int64_t begin, int64_t end) const {
  dimension = checked_dimension(*this, dimension);
  PL_CHECK(begin >= 0 && begin <= end && end <= shape_[dimension],
           fmt::format("slice [{}, {}) of dimension {} of {}", begin, end, dimension,
                       to_string(shape_)));
  Extents shape = shape_;
  shape[dimension] = end - begin;
  return as_strided(shape, strides_, begin * strides_[dimension]);
}

Tensor Tensor::as_strided(Extents shape, Extents strides, int64_t offset) const {
  Tensor result(elements_, dtype_, shape, strides, device_);
  // An empty view keeps its pointer, which need not be followed by any memory.
  if (!result.empty()) {
    result.elements_ =
        static_cast<std::byte*>(elements_) + offset * static_cast<int64_t>(dtype_bytes(dtype_));
  }
  return result;
}

Tensor Tensor::broadcast_to(Extents shape) const {
  const int added = shape.rank() - rank();
  const auto fits = [&](int i) { return shape_[i] == 1 || shape_[i] == shape[i + added]; };
  Extents strides = shape;
  for (int i = 0; i < shape.rank(); ++i) strides[i] = 0;
  for (int i = 0; i < rank(); ++i) {
    PL_CHECK(added >= 0 && fits(i),
             fmt::format("broadcast of {} to {}", to_string(shape_), to_string(shape)));
    strides[i + added] = shape_[i] == 1 ? 0 : strides_[i];
  }
  return Tensor(elements_, dtype_, shape, strides, device_);
}

OwnedTensor allocate_tensor(Memory& memory, DType dtype, Extents shape, Contents contents) {
  const Tensor layout(nullptr, dtype, shape);
  Buffer buffer(memory, layout.size_bytes(), contents);
  const Tensor view(buffer.get(), dtype, shape);
  return {std::move(buffer), view};
}

Tensor contiguous(const Tensor& view, Memory& memory, Buffer& storage) {
  if (view.is_contiguous()) return view;
  storage = Buffer(memory, view.size_bytes());
  const Tensor copy(storage.get(), view.dtype(), view.shape(), view.device());
  copy_elements(view, copy);
  return copy;
}

void copy_elements(const Tensor& from, const Tensor& to) {
  PL_CHECK(from.shape() == to.shape(),
           fmt::format("copy of {} to {}", to_string(from.shape()), to_string(to.shape())));
  PL_CHECK(from.device() == Device::cpu && to.device() == Device::cpu,
           "copy_elements reads and writes host memory");
  if (from.empty()) return;
  if (!is_float(from.dtype()) || !is_float(to.dtype())) {
    PL_CHECK(from.dtype() == to.dtype(),
             fmt::format("copy of {} to {}", dtype_name(from.dtype()), dtype_name(to.dtype())));
    if (from.dtype() == DType::i8) Copy<int8_t, int8_t>(from, to).run();
    if (from.dtype() == DType::i32) Copy<int32_t, int32_t>(from, to).run();
    if (from.dtype() == DType::u32) Copy<uint32_t, uint32_t>(from, to).run();
    if (from.dtype() == DType::u8) Copy<uint8_t, uint8_t>(from, to).run();
    return;
  }
  with_float_dtype(from.dtype(), [&]<class From>() {
    with_float_dtype(to.dtype(), [&]<class To>() { Copy<From, To>(from, to).run(); });
  });
}

std::string to_string(const Extents& extents) {
  return fmt::format("[{}]", fmt::join(extents.begin(), extents.end(), ", "));
}

}  // namespace paceline
