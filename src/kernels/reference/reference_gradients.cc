#include "kernels/reference/reference_gradients.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace paceline {
namespace {

double rounded_to_bf16(float value) { return double{to_float(to_bfloat16(value))}; }

}  // namespace

void ReferenceGradients::do_matmul_input_gradient(const Tensor& dy, const PackedMatrix& w,
                                                  const Tensor& dx) {
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
      dx.row<float>(r)[k] = static_cast<float>(sums[static_cast<size_t>(r * w.k + k)]);
    }
  }
}

}  // namespace paceline
