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

}  // namespace paceline
