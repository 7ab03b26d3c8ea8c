#include "autodiff/matmul.h"

#include <algorithm>

#include "autodiff/elementwise.h"
#include "autodiff/operation.h"
#include "autodiff/reductions.h"
#include "autodiff/segment_sums.h"
#include "autodiff/shape_error.h"
#include "autodiff/shapes.h"

namespace paceline::autodiff {
namespace {

// The dimensions in front of the matrix.
Extents batch_of(const Extents& shape) {
  return Extents(std::span<const int64_t>(shape.begin(), static_cast<size_t>(shape.rank() - 2)));
}

Extents with_matrix(const Extents& batch, int64_t rows, int64_t columns) {
  std::vector<int64_t> sizes(batch.begin(), batch.end());
  sizes.push_back(rows);
  sizes.push_back(columns);
  return Extents(std::span<const int64_t>(sizes));
}

// numpy's rules for the dimensions in front of both matrices.
Extents product_batch(const Array& a, const Array& b) {
  const Extents left = batch_of(a.shape()), right = batch_of(b.shape());
  const int rank = std::max(left.rank(), right.rank());
  std::vector<int64_t> sizes(static_cast<size_t>(rank), 1);
  for (const Extents& batch : {left, right}) {
    for (int i = 0; i < batch.rank(); ++i) {
      const int place = rank - batch.rank() + i;
      int64_t& size = sizes[static_cast<size_t>(place)];
      if (batch[i] == 1) continue;
      if (size != 1 && size != batch[i]) {
        throw_shapes("matmul", {a, b}, "dimensions in front of the matrices that broadcast");
      }
      size = batch[i];
    }
  }
  return Extents(std::span<const int64_t>(sizes));
}

// The matrix at `offset` of a batch.
Tensor matrix_at(const Tensor& batch, int64_t offset) {
  return batch.as_strided({batch.size(-2), batch.size(-1)}, {batch.stride(-2), batch.stride(-1)},
                          offset);
}

// Where each matrix of a batch begins.
std::vector<int64_t> matrix_offsets(const Tensor& batch) {
  std::vector<int64_t> offsets;
  const Extents strides(
      std::span<const int64_t>(batch.strides().begin(), static_cast<size_t>(batch.rank() - 2)));
  batch.as_strided(batch_of(batch.shape()), strides).for_each_offset([&](int64_t offset) {
    offsets.push_back(offset);
  });
  return offsets;
}

class Matmul final : public Operation {
 public:
  std::string_view name() const override { return "matmul"; }

  Array forward(const Arrays& inputs) const override {
    const Array &a = inputs[0], &b = inputs[1];
    const Extents batch = product_batch(a, b);
    const Extents left_shape = with_matrix(batch, a.size(-2), a.size(-1));
    const Extents right_shape = with_matrix(batch, b.size(-2), b.size(-1));
    check_num_elements(name(), left_shape);
    check_num_elements(name(), right_shape);
    Array result(a.context(), DType::f32, with_matrix(batch, a.size(-2), b.size(-1)));
    if (a.num_elements() == 0 || b.num_elements() == 0) {
      return rounded_to(result, common_dtype(inputs));
    }
    const Tensor left = a.tensor().broadcast_to(left_shape);
    const Tensor right = b.tensor().broadcast_to(right_shape);
    const Tensor out = result.writable();
    const auto from = matrix_offsets(left), by = matrix_offsets(right), to = matrix_offsets(out);
    for (size_t i = 0; i < to.size(); ++i) {
      add_product(a.context(), matrix_at(left, from[i]), matrix_at(right, by[i]),
                  matrix_at(out, to[i]));
    }
    return rounded_to(result, common_dtype(inputs));
  }

  Arrays vjp(const Array& cotangent, const Application& at) const override {
    Arrays gradients(2);
    if (at.wanted[0]) {
      gradients[0] =
          sum_to(matmul(cotangent, transpose(at.inputs[1], -2, -1)), at.inputs[0].shape());
    }
    if (at.wanted[1]) {
      gradients[1] =
          sum_to(matmul(transpose(at.inputs[0], -2, -1), cotangent), at.inputs[1].shape());
    }
    return gradients;
  }

  Array jvp(const Arrays& tangents, const Arrays& inputs, const Array&) const override {
    Array sum;
    if (tangents[0].is_defined()) sum = matmul(tangents[0], inputs[1]);
    if (tangents[1].is_defined()) {
      const Array part = matmul(inputs[0], tangents[1]);
      sum = sum.is_defined() ? add(sum, part) : part;
    }
    return sum;
  }

  bool vjp_reads_input(size_t index, const Wanted& wanted) const override {
    return wanted[1 - index];
  }
  bool vjp_reads_output() const override { return false; }
};

}  // namespace

Array matmul(const Array& a, const Array& b) {
  check_float("matmul", a);
  check_float("matmul", b);
  if (a.rank() < 2 || b.rank() < 2 || a.size(-1) != b.size(-2)) {
    throw_shapes("matmul", {a, b}, "[..., m, k] and [..., k, n]");
  }
  if (b.rank() > 2 || a.rank() == 2) return apply_new<Matmul>({a, b});
  const int64_t num_rows = a.size(-1) == 0 ? 0 : a.num_elements() / a.size(-1);
  if (num_rows == 0) return apply_new<Matmul>({a, b});
  const Array rows = reshape(a, {num_rows, a.size(-1)});
  const Extents shape = with_matrix(batch_of(a.shape()), a.size(-2), b.size(-1));
  return reshape(apply_new<Matmul>({rows, b}), shape);
}

}  // namespace paceline::autodiff
