#include "kernels/gradients.h"

#include <fmt/format.h>

#include "base/error.h"
#include "kernels/backend.h"
#include "kernels/shape_check.h"

namespace paceline {

GradientOps& Backend::gradients() {
  PL_CHECK(false, fmt::format("{} has no gradients", name()));
  __builtin_unreachable();
}

void GradientOps::matmul_input_gradient(const Tensor& dy, const PackedMatrix& w, const Tensor& dx) {
  ShapeCheck check("matmul_input_gradient");
  check.dimension("w", "n", w.n);
  check.dimension("w", "k", w.k);
  check.tensor("dy", dy, {"rows", "n"});
  check.tensor("dx", dx, {"rows", "k"});
  if (!dx.empty()) do_matmul_input_gradient(dy, w, dx);
}

void GradientOps::matmul_weight_gradient(const Tensor& dy, const Tensor& x,
                                         OperandRounding rounding, const Tensor& dw) {
  ShapeCheck check("matmul_weight_gradient");
  check.tensor("dy", dy, {"rows", "n"});
  check.tensor("x", x, {"rows", "k"});
  check.tensor("dw", dw, {"n", "k"});
  if (!dw.empty() && !dy.empty()) do_matmul_weight_gradient(dy, x, rounding, dw);
}

}  // namespace paceline
