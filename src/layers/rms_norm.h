// RmsNorm scales every row to unit root mean square (Zhang & Sennrich, 2019), times a weight.
#pragma once

#include <string_view>

#include "kernels/backend.h"
#include "layers/load_context.h"

namespace paceline {

struct RmsNormOptions {
  float eps = 1e-6f;
  float weight_offset = 0.0f;  // folded into the weight at load
};

class RmsNorm {
 public:
  // `name` is the canonical name without ".weight".
  RmsNorm(const LoadContext& context, std::string_view name, int64_t width, RmsNormOptions options)
      : weight_(load_vector(context, std::string(name) + ".weight", width, options.weight_offset)),
        eps_(options.eps) {}

  // x, out [..., width]; in place when they are the same.
  void forward(Backend& backend, const Tensor& x, const Tensor& out) const {
    backend.rms_norm(x, weight_.view, eps_, out);
  }

 private:
  OwnedTensor weight_;  // [width] float32
  float eps_;
};

}  // namespace paceline
