#include "train/dropout.h"

#include <cmath>

#include "kernels/gradients.h"

namespace paceline {

void drop_elements(GradientOps& gradients, const Dropout& dropout, uint64_t module,
                   std::span<const int32_t> batch_rows, const Tensor& x, const Tensor& out) {
  constexpr double kRange = 4294967296.0;
  constexpr uint64_t kOfSteps = 0x9E3779B97F4A7C15u;
  gradients.drop_elements({.threshold = static_cast<uint64_t>(std::ceil(dropout.rate * kRange)),
                           .factor = static_cast<float>(1.0 / (1.0 - dropout.rate)),
                           .seed = dropout.seed,
                           // Steps and modules are streams of their own.
                           .stream = module ^ (static_cast<uint64_t>(dropout.step) * kOfSteps),
                           .first_row = dropout.first_row,
                           .rows = batch_rows},
                          x, out);
}

}  // namespace paceline
