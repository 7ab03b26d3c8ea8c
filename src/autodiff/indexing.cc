#include "autodiff/indexing.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "autodiff/elementwise.h"
#include "autodiff/lines.h"
#include "autodiff/operation.h"
#include "autodiff/shape_error.h"
#include "autodiff/shapes.h"
#include "base/error.h"

namespace paceline::autodiff {
namespace {

using Indices = std::vector<int64_t>;

// The indices in row-major order, each in [0, size).
Indices checked_indices(std::string_view name, const Array& indices, int64_t size) {
  if (indices.dtype() != DType::i32) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: indices of {} {}: expected int32", name,
                            dtype_name(indices.dtype()), to_string(indices.shape())));
  }
  Indices checked;
  checked.reserve(static_cast<size_t>(indices.num_elements()));
  const int32_t* elements = indices.tensor().elements<int32_t>();
  indices.tensor().for_each_offset([&](int64_t at) {
    const int64_t index = elements[at];
    if (index < 0 || index >= size) {
      throw Error(ErrorCode::invalid,
                  fmt::format("{}: index {}: expected one below {}", name, index, size));
    }
    checked.push_back(index);
  });
  return checked;
}

// The shape of x with its axis replaced by the dimensions of the indices.
Extents gathered_shape(std::string_view name, const Array& x, const Array& indices, int axis) {
  std::vector<int64_t> sizes(x.shape().begin(), x.shape().begin() + axis);
  sizes.insert(sizes.end(), indices.shape().begin(), indices.shape().end());
  sizes.insert(sizes.end(), x.shape().begin() + axis + 1, x.shape().end());
  if (sizes.size() > kMaxRank) {
    throw_shapes(name, {x, indices}, fmt::format("a result of at most {} dimensions", kMaxRank));
  }
  return Extents(std::span<const int64_t>(sizes));
}

// x as [outer, size, inner] around an axis.
struct Around {
  int64_t outer = 1;
  int64_t inner = 1;

  Around(const Extents& shape, int axis) {
    for (int i = 0; i < axis; ++i) outer *= shape[i];
    for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  }
};

class Gather final : public Operation {
 public:
  Gather(Array indices, int axis) : indices_(std::move(indices)), axis_(axis) {}

  std::string_view name() const override { return "gather"; }

  Array forward(const Arrays& inputs) const override {
    const Array x = as_contiguous_f32(inputs[0]);
    const int64_t size = x.shape()[axis_];
    const Indices indices = checked_indices(name(), indices_, size);
    Array result(x.context(), DType::f32, gathered_shape(name(), x, indices_, axis_));
    const Around around(x.shape(), axis_);
    const float* from = x.tensor().elements<float>();
    float* to = result.writable().elements<float>();
    const auto count = static_cast<int64_t>(indices.size());
    for_parts(x.context(), around.outer * count, around.inner, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = (i / count) * size + indices[static_cast<size_t>(i % count)];
        std::copy_n(from + row * around.inner, around.inner, to + i * around.inner);
      }
    });
    return rounded_to(result, inputs[0].dtype());
  }

  Arrays vjp(const Array& cotangent, const Application& at) const override {
    const Array zero(cotangent.context(), DType::f32, at.inputs[0].shape());
    return one_gradient(scatter_add(zero, indices_, cotangent, axis_));
  }
  Array jvp(const Arrays& tangents, const Arrays&, const Array&) const override {
    return gather(tangents[0], indices_, axis_);
  }
  bool vjp_reads_input(size_t, const Wanted&) const override { return false; }
  bool vjp_reads_output() const override { return false; }

 private:
  Array indices_;
  int axis_;
};

class ScatterAdd final : public Operation {
 public:
  ScatterAdd(Array indices, int axis) : indices_(std::move(indices)), axis_(axis) {}

  std::string_view name() const override { return "scatter_add"; }

  Array forward(const Arrays& inputs) const override {
    const Array &x = inputs[0], updates = as_contiguous_f32(inputs[1]);
    const int64_t size = x.shape()[axis_];
    const Indices indices = checked_indices(name(), indices_, size);
    if (updates.shape() != gathered_shape(name(), x, indices_, axis_)) {
      throw_shapes(name(), {x, indices_, updates},
                   "updates of the shape that gather gives for these indices");
    }
    Array result(x.context(), DType::f32, x.shape());
    copy_elements(x.tensor(), result.writable());
    const Around around(x.shape(), axis_);
    const float* from = updates.tensor().elements<float>();
    float* to = result.writable().elements<float>();
    const auto count = static_cast<int64_t>(indices.size());
    for (int64_t i = 0; i < around.outer * count; ++i) {
      const int64_t row = (i / count) * size + indices[static_cast<size_t>(i % count)];
      float* sums = to + row * around.inner;
      for (int64_t j = 0; j < around.inner; ++j) sums[j] += from[i * around.inner + j];
    }
    return rounded_to(result, common_dtype(inputs));
  }

  Arrays vjp(const Array& cotangent, const Application& at) const override {
    return {cotangent, at.wanted[1] ? gather(cotangent, indices_, axis_) : Array()};
  }
  Array jvp(const Arrays& tangents, const Arrays& inputs, const Array&) const override {
    if (!tangents[1].is_defined()) return tangents[0];
    const Array zero(inputs[0].context(), inputs[0].dtype(), inputs[0].shape());
    return scatter_add(tangents[0].is_defined() ? tangents[0] : zero, indices_, tangents[1], axis_);
  }
  bool vjp_reads_input(size_t, const Wanted&) const override { return false; }
  bool vjp_reads_output() const override { return false; }

 private:
  Array indices_;
  int axis_;
};

// Index i of row i among all elements of the rows: rows are one dimension then.
Array flat_indices(std::string_view name, const Array& x, const Array& indices) {
  bool fits = x.rank() == indices.rank() + 1;
  for (int i = 0; fits && i < indices.rank(); ++i) fits = x.shape()[i] == indices.shape()[i];
  if (!fits) throw_shapes(name, {x, indices}, "[..., width] and [...]");
  const int64_t width = x.size(-1);
  const Indices checked = checked_indices(name, indices, width);
  if (x.num_elements() > INT32_MAX) {
    throw_shapes(name, {x}, fmt::format("at most {} elements", INT32_MAX));
  }
  Array flat(x.context(), DType::i32, {static_cast<int64_t>(checked.size())});
  int32_t* elements = flat.writable().elements<int32_t>();
  for (size_t i = 0; i < checked.size(); ++i) {
    elements[i] = static_cast<int32_t>(static_cast<int64_t>(i) * width + checked[i]);
  }
  return flat;
}

}  // namespace

Array gather(const Array& x, const Array& indices, int axis) {
  check_float("gather", x);
  return apply_new<Gather>({x}, indices, checked_axis("gather", x, axis));
}

Array scatter_add(const Array& x, const Array& indices, const Array& updates, int axis) {
  check_float("scatter_add", x);
  check_float("scatter_add", updates);
  return apply_new<ScatterAdd>({x, updates}, indices, checked_axis("scatter_add", x, axis));
}

Array embedding(const Array& table, const Array& ids) {
  if (table.rank() != 2) throw_shapes("embedding", {table, ids}, "a table [vocab, width]");
  return gather(table, ids, 0);
}

Array take_from_rows(const Array& x, const Array& indices, std::string_view operation) {
  const Array flat = flat_indices(operation, x, indices);
  return reshape(gather(reshape(x, {x.num_elements()}), flat, 0), indices.shape());
}

Array add_to_rows(const Array& x, const Array& indices, const Array& updates) {
  const Array flat = flat_indices("add_to_rows", x, indices);
  if (updates.shape() != indices.shape()) {
    throw_shapes("add_to_rows", {x, indices, updates}, "an update for each index");
  }
  return reshape(
      scatter_add(reshape(x, {x.num_elements()}), flat, reshape(updates, {flat.num_elements()}), 0),
      x.shape());
}

}  // namespace paceline::autodiff
