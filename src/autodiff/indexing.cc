#include "autodiff/indexing.h"

#include <fmt/format.h>

#include <algorithm>
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
    const Array& x = inputs[0];
    Buffer storage;
    const Tensor from = contiguous(x.tensor(), x.context().memory, storage);
    const int64_t size = x.shape()[axis_];
    const Indices indices = checked_indices(name(), indices_, size);
    Array result(x.context(), x.dtype(), gathered_shape(name(), x, indices_, axis_));
    const Tensor to = result.writable();
    const Around around(x.shape(), axis_);
    const auto count = static_cast<int64_t>(indices.size());
    with_float_dtype(x.dtype(), [&]<class T>() {
      const T* elements = from.elements<T>();
      T* out = to.elements<T>();
      for_parts(x.context(), around.outer * count, around.inner, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t row = (i / count) * size + indices[static_cast<size_t>(i % count)];
          std::copy_n(elements + row * around.inner, around.inner, out + i * around.inner);
        }
      });
    });
    return result;
  }

  Arrays vjp(const Array& cotangent, const Application& at) const override {
    return one_gradient(scatter(cotangent, indices_, axis_, at.inputs[0].shape()[axis_]));
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

// sums [outer, size, inner] += updates [outer, indices, inner]
void add_at(const float* updates, const Indices& indices, const Around& around, int64_t size,
            float* sums) {
  const auto count = static_cast<int64_t>(indices.size());
  for (int64_t i = 0; i < around.outer * count; ++i) {
    const int64_t row = (i / count) * size + indices[static_cast<size_t>(i % count)];
    const float* from = updates + i * around.inner;
    float* to = sums + row * around.inner;
    for (int64_t j = 0; j < around.inner; ++j) to[j] += from[j];
  }
}

class Scatter final : public Operation {
 public:
  Scatter(Array indices, int axis, int64_t size)
      : indices_(std::move(indices)), axis_(axis), size_(size) {}

  std::string_view name() const override { return "scatter"; }

  Array forward(const Arrays& inputs) const override {
    const Array updates = as_contiguous_f32(inputs[0]);
    const Indices indices = checked_indices(name(), indices_, size_);
    Array result(updates.context(), DType::f32, scattered_shape(updates));
    const Around around(result.shape(), axis_);
    add_at(updates.tensor().elements<float>(), indices, around, size_,
           result.writable().elements<float>());
    return rounded_to(result, inputs[0].dtype());
  }

  Arrays vjp(const Array& cotangent, const Application&) const override {
    return one_gradient(gather(cotangent, indices_, axis_));
  }
  Array jvp(const Arrays& tangents, const Arrays&, const Array&) const override {
    return scatter(tangents[0], indices_, axis_, size_);
  }
  bool vjp_reads_input(size_t, const Wanted&) const override { return false; }
  bool vjp_reads_output() const override { return false; }

 private:
  // The shape of updates with the dimensions of the indices replaced by the axis.
  Extents scattered_shape(const Array& updates) const {
    const Extents& shape = updates.shape();
    bool fits = axis_ + indices_.rank() <= shape.rank();
    for (int i = 0; fits && i < indices_.rank(); ++i) {
      fits = shape[axis_ + i] == indices_.shape()[i];
    }
    if (!fits || size_ < 0) {
      throw_shapes(
          name(), {updates, indices_},
          fmt::format("updates with the dimensions of the indices from axis {} on", axis_));
    }
    std::vector<int64_t> sizes(shape.begin(), shape.begin() + axis_);
    sizes.push_back(size_);
    sizes.insert(sizes.end(), shape.begin() + axis_ + indices_.rank(), shape.end());
    return Extents(std::span<const int64_t>(sizes));
  }

  Array indices_;
  int axis_;
  int64_t size_;
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

Array scatter(const Array& updates, const Array& indices, int axis, int64_t size) {
  check_float("scatter", updates);
  const int rank = updates.rank() - indices.rank() + 1;  // of the result
  if (rank < 1 || rank > kMaxRank || axis < -rank || axis >= rank) {
    throw_shapes("scatter", {updates, indices},
                 fmt::format("updates [..., indices, ...] and an axis, found {}", axis));
  }
  return apply_new<Scatter>({updates}, indices, axis < 0 ? axis + rank : axis, size);
}

Array scatter_add(const Array& x, const Array& indices, const Array& updates, int axis) {
  check_float("scatter_add", x);
  axis = checked_axis("scatter_add", x, axis);
  check_float("scatter_add", updates);
  if (updates.shape() != gathered_shape("scatter_add", x, indices, axis)) {
    throw_shapes("scatter_add", {x, indices, updates},
                 "updates of the shape that gather gives for these indices");
  }
  return x + scatter(updates, indices, axis, x.size(axis));
}

void add_rows_at(const Array& updates, const Array& ids, const Tensor& totals) {
  PL_CHECK(updates.rank() == 2 && ids.rank() == 1 && ids.size(0) == updates.size(0) &&
               totals.rank() == 2 && totals.size(1) == updates.size(1) && totals.is_contiguous(),
           "add_rows_at: totals [vocab, width] += updates [rows, width] at ids [rows]");
  const Array rows = as_contiguous_f32(updates);
  add_at(rows.tensor().elements<float>(), checked_indices("add_rows_at", ids, totals.size(0)),
         Around(totals.shape(), 0), totals.size(0), totals.elements<float>());
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
