#include "autodiff/reductions.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "autodiff/elementwise.h"
#include "autodiff/lines.h"
#include "autodiff/operation.h"
#include "autodiff/segment_sums.h"
#include "autodiff/shape_error.h"
#include "autodiff/shapes.h"
#include "base/error.h"

namespace paceline::autodiff {
namespace {

using AxisSet = std::vector<bool>;  // by axis: whether it is reduced

AxisSet checked_axes(std::string_view name, const Array& x, const std::vector<int>& axes) {
  AxisSet set(static_cast<size_t>(x.rank()), axes.empty());
  for (const int axis : axes) {
    const auto index = static_cast<size_t>(checked_axis(name, x, axis));
    if (set[index]) {
      throw_shapes(name, {x}, fmt::format("axis {} once", axis));
    }
    set[index] = true;
  }
  return set;
}

Extents kept_shape(const Extents& shape, const AxisSet& axes) {
  Extents kept = shape;
  for (int i = 0; i < shape.rank(); ++i) {
    if (axes[static_cast<size_t>(i)]) kept[i] = 1;
  }
  return kept;
}

Extents dropped_shape(const Extents& shape, const AxisSet& axes) {
  std::vector<int64_t> sizes;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!axes[static_cast<size_t>(i)]) sizes.push_back(shape[i]);
  }
  return Extents(std::span<const int64_t>(sizes));
}

// An array whose reduced axes are one dimension.
struct Grouped {
  Array x;  // [outer, reduced, inner] float32, contiguous
  int64_t outer = 1;
  int64_t reduced = 1;
  int64_t inner = 1;
};

// Brings the axes together: where others lie between them, behind the others.
Grouped group_axes(const Array& x, const AxisSet& axes) {
  const Extents& shape = x.shape();
  Grouped grouped;
  int num_changes = 0;
  bool was_reduced = false;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool is_reduced = axes[static_cast<size_t>(i)];
    if (shape[i] != 1 && is_reduced != was_reduced) ++num_changes;
    if (shape[i] != 1) was_reduced = is_reduced;
    int64_t& size = is_reduced ? grouped.reduced : num_changes == 0 ? grouped.outer : grouped.inner;
    size *= shape[i];
  }
  if (num_changes <= 2) {
    grouped.x = as_contiguous_f32(x);
    return grouped;
  }
  std::vector<int> order;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!axes[static_cast<size_t>(i)]) order.push_back(i);
  }
  for (int i = 0; i < shape.rank(); ++i) {
    if (axes[static_cast<size_t>(i)]) order.push_back(i);
  }
  grouped.x = as_contiguous_f32(permute(x, order));
  grouped.outer *= grouped.inner;
  grouped.inner = 1;
  return grouped;
}

void sum_grouped(const Grouped& grouped, float* out) {
  const float* x = grouped.x.tensor().elements<float>();
  const Context& context = grouped.x.context();
  const int64_t size = grouped.reduced * grouped.inner;
  if (grouped.inner == 1) {
    for_parts(context, grouped.outer, size, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float* terms = x + i * size;
        out[i] = sum_terms(size, [&](int64_t j) { return terms[j]; });
      }
    });
    return;
  }
  for (int64_t i = 0; i < grouped.outer; ++i) {
    add_row_sums(context, x + i * size, grouped.reduced, grouped.inner, out + i * grouped.inner);
  }
}

// NaN if one element is.
float larger(float a, float b) { return b > a || b != b ? b : a; }

void max_grouped(const Grouped& grouped, float* out) {
  const float* x = grouped.x.tensor().elements<float>();
  const int64_t inner = grouped.inner, size = grouped.reduced * inner;
  std::fill(out, out + grouped.outer * inner, -std::numeric_limits<float>::infinity());
  for_parts(grouped.x.context(), grouped.outer, size, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float* most = out + i * inner;
      for (int64_t j = 0; j < grouped.reduced; ++j) {
        const float* row = x + i * size + j * inner;
        for (int64_t c = 0; c < inner; ++c) most[c] = larger(most[c], row[c]);
      }
    }
  });
}

// The result has the reduced axes with size 1.
class Sum final : public Operation {
 public:
  explicit Sum(AxisSet axes) : axes_(std::move(axes)) {}

  std::string_view name() const override { return "sum"; }

  Array forward(const Arrays& inputs) const override {
    const Array& x = inputs[0];
    Array result(x.context(), DType::f32, kept_shape(x.shape(), axes_));
    if (x.num_elements() > 0) {
      sum_grouped(group_axes(x, axes_), result.writable().elements<float>());
    }
    return rounded_to(result, x.dtype());
  }
  Arrays vjp(const Array& cotangent, const Application& at) const override {
    return one_gradient(broadcast_to(cotangent, at.inputs[0].shape()));
  }
  Array jvp(const Arrays& tangents, const Arrays&, const Array&) const override {
    return apply_new<Sum>({tangents[0]}, axes_);
  }
  bool vjp_reads_input(size_t, const Wanted&) const override { return false; }
  bool vjp_reads_output() const override { return false; }

 private:
  AxisSet axes_;
};

class Max final : public Operation {
 public:
  explicit Max(AxisSet axes) : axes_(std::move(axes)) {}

  std::string_view name() const override { return "max"; }

  Array forward(const Arrays& inputs) const override {
    const Array& x = inputs[0];
    if (x.num_elements() == 0) throw_shapes(name(), {x}, "at least one element");
    Array result(x.context(), DType::f32, kept_shape(x.shape(), axes_));
    max_grouped(group_axes(x, axes_), result.writable().elements<float>());
    return rounded_to(result, x.dtype());
  }
  Arrays vjp(const Array& cotangent, const Application& at) const override {
    return one_gradient(cotangent * shares(at.inputs[0], at.output));
  }
  Array jvp(const Arrays& tangents, const Arrays& inputs, const Array& output) const override {
    return apply_new<Sum>({tangents[0] * shares(inputs[0], output)}, axes_);
  }

 private:
  // 1 / n where x is one of n elements equal to the maximum, else 0.
  Array shares(const Array& x, const Array& output) const {
    const Array zero(x.context(), DType::f32, Extents());
    const Array is_max = where(equal(x, output), zero + 1.0f, zero);
    return is_max / apply_new<Sum>({is_max}, axes_);
  }

  AxisSet axes_;
};

Array without_axes(const Array& x, const AxisSet& axes, Reduced reduced) {
  return reduced == Reduced::kept ? x : reshape(x, dropped_shape(x.shape(), axes));
}

}  // namespace

Array sum(const Array& x, const std::vector<int>& axes, Reduced reduced) {
  check_float("sum", x);
  const AxisSet set = checked_axes("sum", x, axes);
  return without_axes(apply_new<Sum>({x}, set), set, reduced);
}

Array mean(const Array& x, const std::vector<int>& axes, Reduced reduced) {
  check_float("mean", x);
  const AxisSet set = checked_axes("mean", x, axes);
  int64_t count = 1;
  for (int i = 0; i < x.rank(); ++i) count *= set[static_cast<size_t>(i)] ? x.size(i) : 1;
  if (count == 0) throw_shapes("mean", {x}, "at least one element");
  const Array total = apply_new<Sum>({convert(x, DType::f32)}, set);
  return without_axes(convert(scale(total, 1.0f / static_cast<float>(count)), x.dtype()), set,
                      reduced);
}

Array max(const Array& x, const std::vector<int>& axes, Reduced reduced) {
  check_float("max", x);
  const AxisSet set = checked_axes("max", x, axes);
  return without_axes(apply_new<Max>({x}, set), set, reduced);
}

Array sum_to(const Array& x, const Extents& shape) {
  if (x.shape() == shape) return x;
  const int added = x.rank() - shape.rank();
  AxisSet axes(static_cast<size_t>(x.rank()), false);
  bool fits = added >= 0;
  for (int i = 0; fits && i < x.rank(); ++i) {
    const bool is_reduced = i < added || (shape[i - added] == 1 && x.shape()[i] != 1);
    axes[static_cast<size_t>(i)] = is_reduced;
    fits = is_reduced || shape[i - added] == x.shape()[i];
  }
  if (!fits) throw_shapes("sum_to", {x}, "a shape that broadcasts from " + to_string(shape));
  return reshape(apply_new<Sum>({x}, std::move(axes)), shape);
}

}  // namespace paceline::autodiff
