#include "autodiff/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "autodiff/operation.h"
#include "autodiff/reductions.h"
#include "autodiff/shape_error.h"
#include "base/error.h"

namespace paceline::autodiff {
namespace {

// An operation without arithmetic, thus linear: `forward_of` and its transpose.
class Movement : public Operation {
 public:
  Arrays vjp(const Array& cotangent, const Application& at) const final {
    return one_gradient(transposed(cotangent, at.inputs[0].shape()));
  }
  Array jvp(const Arrays& tangents, const Arrays&, const Array&) const final {
    return again(tangents[0]);
  }
  bool vjp_reads_input(size_t, const Wanted&) const final { return false; }
  bool vjp_reads_output() const final { return false; }

 private:
  virtual Array again(const Array& x) const = 0;
  virtual Array transposed(const Array& x, const Extents& input_shape) const = 0;
};

class Reshape final : public Movement {
 public:
  explicit Reshape(const Extents& shape) : shape_(shape) {}

  std::string_view name() const override { return "reshape"; }
  Array forward(const Arrays& inputs) const override {
    const Array& x = inputs[0];
    if (x.tensor().is_contiguous()) return x.with_view(x.tensor().reshape(shape_));
    Array copy(x.context(), x.dtype(), x.shape());
    copy_elements(x.tensor(), copy.writable());
    return copy.with_view(copy.tensor().reshape(shape_));
  }

 private:
  Array again(const Array& x) const override { return reshape(x, shape_); }
  Array transposed(const Array& x, const Extents& input_shape) const override {
    return reshape(x, input_shape);
  }

  Extents shape_;
};

class Permute final : public Movement {
 public:
  explicit Permute(std::vector<int> axes) : axes_(std::move(axes)) {}

  std::string_view name() const override { return "permute"; }
  Array forward(const Arrays& inputs) const override {
    const Tensor& x = inputs[0].tensor();
    Extents shape = x.shape(), strides = x.strides();
    for (int i = 0; i < x.rank(); ++i) {
      shape[i] = x.shape()[axes_[static_cast<size_t>(i)]];
      strides[i] = x.strides()[axes_[static_cast<size_t>(i)]];
    }
    return inputs[0].with_view(x.as_strided(shape, strides));
  }

 private:
  Array again(const Array& x) const override { return permute(x, axes_); }
  Array transposed(const Array& x, const Extents&) const override {
    std::vector<int> inverse(axes_.size());
    for (size_t i = 0; i < axes_.size(); ++i) {
      inverse[static_cast<size_t>(axes_[i])] = static_cast<int>(i);
    }
    return permute(x, inverse);
  }

  std::vector<int> axes_;
};

class Broadcast final : public Movement {
 public:
  explicit Broadcast(const Extents& shape) : shape_(shape) {}

  std::string_view name() const override { return "broadcast_to"; }
  Array forward(const Arrays& inputs) const override {
    return inputs[0].with_view(inputs[0].tensor().broadcast_to(shape_));
  }

 private:
  Array again(const Array& x) const override { return broadcast_to(x, shape_); }
  Array transposed(const Array& x, const Extents& input_shape) const override {
    return sum_to(x, input_shape);
  }

  Extents shape_;
};

int64_t num_in(const Range& range) {
  const int64_t span = range.step > 0 ? range.end - range.begin : range.begin - range.end;
  const int64_t step = range.step > 0 ? range.step : -range.step;
  return span <= 0 ? 0 : (span + step - 1) / step;
}

// The part of a tensor that a range names.
Tensor part(const Tensor& x, const Range& range) {
  Extents shape = x.shape(), strides = x.strides();
  shape[range.axis] = num_in(range);
  strides[range.axis] *= range.step;
  return x.as_strided(shape, strides, range.begin * x.strides()[range.axis]);
}

class Slice final : public Movement {
 public:
  explicit Slice(const Range& range) : range_(range) {}

  std::string_view name() const override { return "slice"; }
  Array forward(const Arrays& inputs) const override {
    return inputs[0].with_view(part(inputs[0].tensor(), range_));
  }

 private:
  Array again(const Array& x) const override { return slice(x, range_); }
  Array transposed(const Array& x, const Extents& input_shape) const override {
    return place(x, range_, input_shape[range_.axis]);
  }

  Range range_;
};

class Place final : public Movement {
 public:
  Place(const Range& range, int64_t size) : range_(range), size_(size) {}

  std::string_view name() const override { return "place"; }
  Array forward(const Arrays& inputs) const override {
    Extents shape = inputs[0].shape();
    shape[range_.axis] = size_;
    Array result(inputs[0].context(), inputs[0].dtype(), shape);
    copy_elements(inputs[0].tensor(), part(result.writable(), range_));
    return result;
  }

 private:
  Array again(const Array& x) const override { return place(x, range_, size_); }
  Array transposed(const Array& x, const Extents&) const override { return slice(x, range_); }

  Range range_;
  int64_t size_;
};

class Select final : public Movement {
 public:
  Select(int axis, int64_t index) : axis_(axis), index_(index) {}

  std::string_view name() const override { return "select"; }
  Array forward(const Arrays& inputs) const override {
    const Tensor& x = inputs[0].tensor();
    std::vector<int64_t> sizes, strides;
    for (int i = 0; i < x.rank(); ++i) {
      if (i == axis_) continue;
      sizes.push_back(x.shape()[i]);
      strides.push_back(x.strides()[i]);
    }
    return inputs[0].with_view(x.as_strided(Extents(std::span<const int64_t>(sizes)),
                                            Extents(std::span<const int64_t>(strides)),
                                            index_ * x.strides()[axis_]));
  }

 private:
  Array again(const Array& x) const override { return select(x, axis_, index_); }
  Array transposed(const Array& x, const Extents& input_shape) const override {
    Extents kept = input_shape;
    kept[axis_] = 1;
    return place(reshape(x, kept), {.axis = axis_, .begin = index_, .end = index_ + 1},
                 input_shape[axis_]);
  }

  int axis_;
  int64_t index_;
};

class MakeContiguous final : public Movement {
 public:
  std::string_view name() const override { return "make_contiguous"; }
  Array forward(const Arrays& inputs) const override {
    Array copy(inputs[0].context(), inputs[0].dtype(), inputs[0].shape());
    copy_elements(inputs[0].tensor(), copy.writable());
    return copy;
  }

 private:
  Array again(const Array& x) const override { return make_contiguous(x); }
  Array transposed(const Array& x, const Extents&) const override { return x; }
};

class Concatenate final : public Operation {
 public:
  explicit Concatenate(int axis) : axis_(axis) {}

  std::string_view name() const override { return "concatenate"; }

  Array forward(const Arrays& inputs) const override {
    Extents shape = inputs.front().shape();
    shape[axis_] = 0;
    for (const Array& input : inputs) shape[axis_] += input.shape()[axis_];
    Array result(inputs.front().context(), common_dtype(inputs), shape);
    const Tensor out = result.writable();
    int64_t begin = 0;
    for (const Array& input : inputs) {
      const int64_t end = begin + input.shape()[axis_];
      copy_elements(input.tensor(), out.slice(axis_, begin, end));
      begin = end;
    }
    return result;
  }

  Arrays vjp(const Array& cotangent, const Application& at) const override {
    Arrays gradients(at.inputs.size());
    int64_t begin = 0;
    for (size_t i = 0; i < at.inputs.size(); ++i) {
      const int64_t end = begin + at.inputs[i].shape()[axis_];
      if (at.wanted[i]) {
        gradients[i] = slice(cotangent, {.axis = axis_, .begin = begin, .end = end});
      }
      begin = end;
    }
    return gradients;
  }

  Array jvp(const Arrays& tangents, const Arrays& inputs, const Array&) const override {
    Arrays parts = tangents;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].is_defined()) continue;
      parts[i] = Array(inputs[i].context(), inputs[i].dtype(), inputs[i].shape());
    }
    return concatenate(parts, axis_);
  }
  bool vjp_reads_input(size_t, const Wanted&) const override { return false; }
  bool vjp_reads_output() const override { return false; }

 private:
  int axis_;
};

Range checked_range(std::string_view name, const Array& x, Range range, int64_t size) {
  range.axis = checked_axis(name, x, range.axis);
  const int64_t count = range.step == 0 ? 0 : num_in(range);
  const int64_t last = range.begin + (count - 1) * range.step;
  const auto is_inside = [&](int64_t index) { return index >= 0 && index < size; };
  if (range.step != 0 && (count == 0 || (is_inside(range.begin) && is_inside(last)))) return range;
  throw Error(ErrorCode::invalid,
              fmt::format("{}: elements [{}, {}) in steps of {} of axis {} of {}: expected a step "
                          "that isn't 0 and elements within {}",
                          name, range.begin, range.end, range.step, range.axis,
                          to_string(x.shape()), size));
}

// `shape` with a size of -1 replaced by what is left.
Extents completed_shape(const Array& x, Extents shape) {
  int open = -1;
  int64_t known = 1;
  bool is_valid = true;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == -1 && open < 0) {
      open = i;
    } else if (shape[i] < 0) {
      is_valid = false;
    } else {
      is_valid = is_valid && !__builtin_mul_overflow(known, shape[i], &known);
    }
  }
  if (is_valid && open >= 0 && known > 0 && x.num_elements() % known == 0) {
    shape[open] = x.num_elements() / known;
    return shape;
  }
  if (is_valid && open < 0 && known == x.num_elements()) return shape;
  throw_shapes("reshape", {x},
               fmt::format("a shape of {} elements, found {}", x.num_elements(), to_string(shape)));
}

}  // namespace

Array reshape(const Array& x, const Extents& shape) {
  const Extents completed = completed_shape(x, shape);
  check_num_elements("reshape", completed);
  return completed == x.shape() ? x : apply_new<Reshape>({x}, completed);
}

Array permute(const Array& x, const std::vector<int>& axes) {
  std::vector<int> order;
  for (const int axis : axes) order.push_back(checked_axis("permute", x, axis));
  std::vector<int> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  if (static_cast<int>(sorted.size()) != x.rank() ||
      std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    throw_shapes("permute", {x},
                 fmt::format("each of its axes once, found {}", fmt::join(axes, ", ")));
  }
  return apply_new<Permute>({x}, std::move(order));
}

Array transpose(const Array& x, int first, int second) {
  std::vector<int> axes;
  for (int i = 0; i < x.rank(); ++i) axes.push_back(i);
  std::swap(axes[static_cast<size_t>(checked_axis("transpose", x, first))],
            axes[static_cast<size_t>(checked_axis("transpose", x, second))]);
  return permute(x, axes);
}

Array broadcast_to(const Array& x, const Extents& shape) {
  if (shape == x.shape()) return x;
  bool fits = x.rank() <= shape.rank();
  for (int i = 0; fits && i < x.rank(); ++i) {
    const int64_t wanted = shape[shape.rank() - x.rank() + i];
    fits = wanted >= 0 && (x.shape()[i] == 1 || x.shape()[i] == wanted);
  }
  for (int i = 0; fits && i < shape.rank(); ++i) fits = shape[i] >= 0;
  if (!fits) {
    throw_shapes("broadcast_to", {x},
                 "sizes of 1 or those of " + to_string(shape) + ", from the last dimension on");
  }
  check_num_elements("broadcast_to", shape);
  return apply_new<Broadcast>({x}, shape);
}

Array slice(const Array& x, const Range& range) {
  const int axis = checked_axis("slice", x, range.axis);
  return apply_new<Slice>({x}, checked_range("slice", x, range, x.size(axis)));
}

Array place(const Array& x, const Range& range, int64_t size) {
  const Range checked = checked_range("place", x, range, size);
  if (num_in(checked) != x.size(checked.axis)) {
    throw_shapes("place", {x},
                 fmt::format("{} elements along axis {}", num_in(checked), checked.axis));
  }
  return apply_new<Place>({x}, checked, size);
}

Array select(const Array& x, int axis, int64_t index) {
  axis = checked_axis("select", x, axis);
  if (index < 0 || index >= x.size(axis)) {
    throw_shapes("select", {x}, fmt::format("an element of axis {}, found {}", axis, index));
  }
  return apply_new<Select>({x}, axis, index);
}

Array make_contiguous(const Array& x) {
  return x.tensor().is_contiguous() ? x : apply_new<MakeContiguous>({x});
}

Array concatenate(const Arrays& arrays, int axis) {
  if (arrays.empty()) throw Error(ErrorCode::invalid, "concatenate: no array: expected at least 1");
  axis = checked_axis("concatenate", arrays.front(), axis);
  for (const Array& array : arrays) {
    check_float("concatenate", array);
    bool fits = array.rank() == arrays.front().rank();
    for (int i = 0; fits && i < array.rank(); ++i) {
      fits = i == axis || array.shape()[i] == arrays.front().shape()[i];
    }
    if (!fits) {
      throw_shapes("concatenate", {arrays.front(), array},
                   fmt::format("equal sizes except along axis {}", axis));
    }
  }
  return apply_new<Concatenate>(arrays, axis);
}

}  // namespace paceline::autodiff
