// Tensor is a view of elements in memory: reshaping, slicing and broadcasting copy nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "base/error.h"
#include "tensor/buffer.h"
#include "tensor/dtype.h"

namespace paceline {

enum class Device : uint8_t { cpu, cuda };

constexpr int kMaxRank = 6;

// The sizes or strides of up to kMaxRank dimensions.
class Extents {
 public:
  Extents() = default;
  Extents(std::initializer_list<int64_t> values)
      : Extents(std::span<const int64_t>(values.begin(), values.size())) {}
  explicit Extents(std::span<const int64_t> values);

  int rank() const { return rank_; }
  int64_t operator[](int i) const { return values_[static_cast<size_t>(i)]; }
  int64_t& operator[](int i) { return values_[static_cast<size_t>(i)]; }
  const int64_t* begin() const { return values_.data(); }
  const int64_t* end() const { return values_.data() + rank_; }
  bool operator==(const Extents& other) const;

 private:
  std::array<int64_t, kMaxRank> values_{};
  int rank_ = 0;
};

// Never owns; the Buffer (or mapped file) behind it must outlive it. Strides count elements and may
// be zero (broadcast) or negative. Misuse is a bug of the program (PL_CHECK), not an Error.
class Tensor {
 public:
  Tensor() = default;
  // A contiguous row-major view of `elements`.
  Tensor(void* elements, DType dtype, Extents shape, Device device = Device::cpu);
  Tensor(void* elements, DType dtype, Extents shape, Extents strides, Device device);

  DType dtype() const { return dtype_; }
  Device device() const { return device_; }
  const Extents& shape() const { return shape_; }
  const Extents& strides() const { return strides_; }
  int rank() const { return shape_.rank(); }
  int64_t size(int dimension) const {
    return shape_[dimension < 0 ? rank() + dimension : dimension];
  }
  int64_t stride(int dimension) const {
    return strides_[dimension < 0 ? rank() + dimension : dimension];
  }
  int64_t num_elements() const;
  size_t size_bytes() const { return static_cast<size_t>(num_elements()) * dtype_bytes(dtype_); }
  // The memory of a contiguous tensor.
  std::span<const std::byte> bytes() const;
  bool is_contiguous() const;
  bool empty() const { return num_elements() == 0; }

  // The first element as T, which must be the dtype's type.
  template <class T>
  T* elements() const {
    PL_CHECK(dtype_ == dtype_of<T>(), "tensor read as another dtype");
    return static_cast<T*>(elements_);
  }
  void* raw() const { return elements_; }
  // Row `index` of the first dimension; usable as an array if the last dimension is contiguous.
  template <class T>
  T* row(int64_t index) const {
    return elements<T>() + index * strides_[0];
  }

  Tensor reshape(Extents shape) const;  // the view must be contiguous
  Tensor transpose(int first, int second) const;
  Tensor slice(int dimension, int64_t begin, int64_t end) const;
  Tensor as_strided(Extents shape, Extents strides, int64_t offset = 0) const;
  Tensor broadcast_to(Extents shape) const;  // numpy's rules

  // Calls body(offset) for every element in row-major order; offset counts elements from raw().
  template <class Body>
  void for_each_offset(Body&& body) const;

 private:
  void* elements_ = nullptr;
  DType dtype_ = DType::f32;
  Device device_ = Device::cpu;
  Extents shape_;
  Extents strides_;
};

// A buffer and the contiguous view of all of it.
struct OwnedTensor {
  Buffer buffer;
  Tensor view;
};

OwnedTensor allocate_tensor(Memory& memory, DType dtype, Extents shape,
                            Contents contents = Contents::zeroed);

// `view` itself if it is contiguous; else a contiguous copy held by `storage`.
Tensor contiguous(const Tensor& view, Memory& memory, Buffer& storage);

// Copies with conversion between the float dtypes and any strides; shapes must be equal.
void copy_elements(const Tensor& from, const Tensor& to);

// "[2, 3]"
std::string to_string(const Extents& extents);

template <class Body>
void Tensor::for_each_offset(Body&& body) const {
  if (empty()) return;
  std::array<int64_t, kMaxRank> index{};
  int64_t offset = 0;
  while (true) {
    body(offset);
    int dimension = rank() - 1;
    for (; dimension >= 0; --dimension) {
      auto& position = index[static_cast<size_t>(dimension)];
      offset += strides_[dimension];
      if (++position < shape_[dimension]) break;
      offset -= position * strides_[dimension];
      position = 0;
    }
    if (dimension < 0) return;
  }
}

}  // namespace paceline
