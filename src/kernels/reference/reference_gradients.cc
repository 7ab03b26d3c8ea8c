#include "kernels/reference/reference_gradients.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace paceline {
namespace {

double rounded_to_bf16(float value) { return double{to_float(to_bfloat16(value))}; }

}  // namespace

void ReferenceGradients::do_matmul_input_gradient(const Tensor& dy, const PackedMatrix& w,
                                                  Former former, const Tensor& dx) {
  const bool is_bf16 = w.groups || w.dtype == DType::bf16;
  std::vector<float> weights(static_cast<size_t>(w.k));
  std::vector<double> sums(static_cast<size_t>(dx.size(0) * w.k));
  for (int64_t n = 0; n < w.n; ++n) {
    unpack_row(w, n, weights.data());
    for (int64_t r = 0; r < dx.size(0); ++r) {
      const float gradient = dy.row<float>(r)[n];
      const double factor = is_bf16 ? rounded_to_bf16(gradient) : double{gradient};
      for (int64_t k = 0; k < w.k; ++k) {
        const float weight = weights[static_cast<size_t>(k)];
        sums[static_cast<size_t>(r * w.k + k)] +=
            factor * (w.groups ? rounded_to_bf16(weight) : double{weight});
      }
    }
  }
  for (int64_t r = 0; r < dx.size(0); ++r) {
    for (int64_t k = 0; k < w.k; ++k) {
      float& element = dx.row<float>(r)[k];
      const double before = former == Former::added_to ? double{element} : 0.0;
      element = static_cast<float>(before + sums[static_cast<size_t>(r * w.k + k)]);
    }
  }
}

void ReferenceGradients::do_matmul_weight_gradient(const Tensor& dy, const Tensor& x,
                                                   OperandRounding rounding, const Tensor& dw) {
  const auto operand = [rounding](float value) {
    return rounding == OperandRounding::bfloat16 ? rounded_to_bf16(value) : double{value};
  };
  const int64_t rows = dy.size(0), k = x.size(1);
  std::vector<double> sums(static_cast<size_t>(k));
  for (int64_t n = 0; n < dy.size(1); ++n) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (int64_t r = 0; r < rows; ++r) {
      const double gradient = operand(dy.row<float>(r)[n]);
      for (int64_t i = 0; i < k; ++i) {
        sums[static_cast<size_t>(i)] += gradient * operand(x.row<float>(r)[i]);
      }
    }
    for (int64_t i = 0; i < k; ++i) {
      float& element = dw.row<float>(n)[i];
      element = static_cast<float>(double{element} + sums[static_cast<size_t>(i)]);
    }
  }
}

}  // namespace paceline
