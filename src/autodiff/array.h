// Array is a shared tensor that never changes, and that transformations follow through operations.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "autodiff/shared_pool.h"
#include "base/thread_pool.h"
#include "tensor/memory.h"
#include "tensor/tensor.h"

namespace paceline::autodiff {

// Where arrays live and who computes them. Must outlive its arrays. Results don't depend on the
// pool; with one, all operations on arrays of this context must be called by one thread at a time.
struct Context {
  Memory& memory;
  ThreadPool* pool = nullptr;
  // Where the CPU can't reach `memory`: out = x + y, in place, of contiguous float32 tensors. A vjp
  // sums gradients by it; other operations of this module don't take such arrays.
  std::function<void(const Tensor& x, const Tensor& y, const Tensor& out)> add{};
  // In place of `pool`: any thread may then call operations on arrays of this context.
  SharedPool* shared_pool = nullptr;
};

// The most elements of an array, views that broadcast included: no count of bytes, or of pairs of
// elements that a sum visits, then overflows.
constexpr int64_t kMaxElements = int64_t{1} << 40;

struct Traced;

// float32, float16 or bfloat16; integers (int32) and masks (int8, 0 or 1) have no derivative.
// Copies share elements. An undefined array stands for zero where tangents and cotangents are
// given.
class Array {
 public:
  Array() = default;
  // Elements of its own. Throws Error exhausted for more than kMaxElements, or than there is
  // memory.
  Array(const Context& context, DType dtype, const Extents& shape,
        Contents contents = Contents::zeroed);
  // An array that a transformation follows: `traced.value` is what it stands for.
  explicit Array(Traced traced);

  bool is_defined() const { return node_ != nullptr; }
  const Context& context() const;
  DType dtype() const;
  const Extents& shape() const;
  int rank() const { return shape().rank(); }
  int64_t size(int dimension) const;  // negative ones count from the last
  int64_t num_elements() const;

  // The elements, any strides; of a traced array those of its value.
  const Tensor& tensor() const;
  // Another view of the same elements; not of a traced array.
  Array with_view(const Tensor& view) const;
  // The elements, to be written by the operation that allocated them. No other copy of the array
  // and no view of its elements may exist yet.
  Tensor writable();
  bool is_exclusive() const;

  // The transformation that follows this array, or none.
  const Traced* traced() const;
  // Dtype and shape alone: what a tape keeps where a rule reads no elements.
  Array without_elements() const;

 private:
  struct Node;
  explicit Array(std::shared_ptr<Node> node) : node_(std::move(node)) {}
  const Node& node() const;

  std::shared_ptr<Node> node_;
};

using Arrays = std::vector<Array>;

class Tape;

// How a transformation follows an array: a jvp by its tangent, a vjp by a slot of its tape.
struct Traced {
  uint64_t level = 0;            // transformations that begin later (inner ones) have higher levels
  Array value;                   // the array as the transformations outside of this one have it
  Array tangent{};               // jvp; of the value's shape and dtype
  std::shared_ptr<Tape> tape{};  // vjp
  int64_t slot = 0;              // vjp
};

// The element, converted to float32; it must be the only one.
float to_scalar(const Array& array);
// All elements in row-major order, converted to float32.
std::vector<float> to_floats(const Array& array);

// The values of an array that isn't traced as contiguous float32: itself if it is that already.
Array as_contiguous_f32(const Array& array);
// The values of an array that isn't traced in `dtype`, rounded to nearest, ties to even.
Array rounded_to(const Array& array, DType dtype);

}  // namespace paceline::autodiff
