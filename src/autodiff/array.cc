#include "autodiff/array.h"

#include <fmt/format.h>

#include <utility>

#include "autodiff/shape_error.h"
#include "base/error.h"

namespace paceline::autodiff {

struct Array::Node {
  const Context* context = nullptr;
  DType dtype = DType::f32;
  Extents shape;
  Tensor view;                      // of an array with elements that isn't traced
  std::shared_ptr<Buffer> storage;  // what the view points into
  std::unique_ptr<const Traced> traced;
};

Array::Array(const Context& context, DType dtype, const Extents& shape, Contents contents)
    : node_(std::make_shared<Node>()) {
  check_num_elements("array", shape);
  OwnedTensor owned = allocate_tensor(context.memory, dtype, shape, contents);
  node_->context = &context;
  node_->dtype = dtype;
  node_->shape = shape;
  node_->view = owned.view;
  node_->storage = std::make_shared<Buffer>(std::move(owned.buffer));
}

Array::Array(Traced traced) : node_(std::make_shared<Node>()) {
  node_->context = &traced.value.context();
  node_->dtype = traced.value.dtype();
  node_->shape = traced.value.shape();
  node_->traced = std::make_unique<const Traced>(std::move(traced));
}

const Array::Node& Array::node() const {
  PL_CHECK(node_ != nullptr, "an undefined array has no shape and no elements");
  return *node_;
}

const Context& Array::context() const { return *node().context; }
DType Array::dtype() const { return node().dtype; }
const Extents& Array::shape() const { return node().shape; }

int64_t Array::size(int dimension) const {
  const int index = dimension < 0 ? rank() + dimension : dimension;
  PL_CHECK(index >= 0 && index < rank(), "size of a dimension that the array doesn't have");
  return shape()[index];
}

int64_t Array::num_elements() const {
  int64_t count = 1;
  for (int64_t size : shape()) count *= size;
  return count;
}

const Tensor& Array::tensor() const {
  if (node().traced != nullptr) return node().traced->value.tensor();
  PL_CHECK(node().storage != nullptr,
           "the elements of this array weren't kept: see Operation::vjp_reads_input");
  return node().view;
}

Array Array::with_view(const Tensor& view) const {
  PL_CHECK(node().traced == nullptr && node().storage != nullptr, "a view of a traced array");
  auto other = std::make_shared<Node>();
  other->context = node().context;
  other->dtype = view.dtype();
  other->shape = view.shape();
  other->view = view;
  other->storage = node().storage;
  return Array(std::move(other));
}

bool Array::is_exclusive() const {
  return node_.use_count() == 1 && node().traced == nullptr && node().storage.use_count() == 1;
}

Tensor Array::writable() {
  PL_CHECK(is_exclusive(), "writing to elements that others hold");
  return node().view;
}

const Traced* Array::traced() const { return node().traced.get(); }

Array Array::without_elements() const {
  auto other = std::make_shared<Node>();
  other->context = node().context;
  other->dtype = node().dtype;
  other->shape = node().shape;
  return Array(std::move(other));
}

float to_scalar(const Array& array) {
  PL_CHECK(array.num_elements() == 1,
           fmt::format("an array of shape {} read as one number", to_string(array.shape())));
  return to_floats(array).front();
}

std::vector<float> to_floats(const Array& array) {
  const Tensor& from = array.tensor();
  std::vector<float> values;
  values.reserve(static_cast<size_t>(from.num_elements()));
  if (is_float(from.dtype())) {
    with_float_dtype(from.dtype(), [&]<class T>() {
      from.for_each_offset([&](int64_t at) { values.push_back(to_float(from.elements<T>()[at])); });
    });
  } else if (from.dtype() == DType::i8) {
    from.for_each_offset([&](int64_t at) { values.push_back(from.elements<int8_t>()[at]); });
  } else {
    from.for_each_offset(
        [&](int64_t at) { values.push_back(static_cast<float>(from.elements<int32_t>()[at])); });
  }
  return values;
}

Array as_contiguous_f32(const Array& array) {
  if (array.dtype() == DType::f32 && array.tensor().is_contiguous()) return array;
  Array copy(array.context(), DType::f32, array.shape());
  copy_elements(array.tensor(), copy.writable());
  return copy;
}

Array rounded_to(const Array& array, DType dtype) {
  if (array.dtype() == dtype) return array;
  Array copy(array.context(), dtype, array.shape());
  copy_elements(array.tensor(), copy.writable());
  return copy;
}

}  // namespace paceline::autodiff
