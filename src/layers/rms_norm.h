// RmsNorm scales every row to unit root mean square (Zhang & Sennrich, 2019), times a weight.
#pragma once

#include <span>
#include <string_view>

#include "tensor/tensor.h"

namespace paceline {

class Backend;
struct LoadContext;

struct RmsNormOptions {
  float eps = 1e-6f;
  float weight_offset = 0.0f;  // folded into the weight at load
};

class RmsNorm {
 public:
  // `name` is the canonical name without ".weight".
  RmsNorm(const LoadContext& context, std::string_view name, int64_t width, RmsNormOptions options);

  // x, out [..., width]; in place when they are the same.
  void forward(Backend& backend, const Tensor& x, const Tensor& out) const;

  const Tensor& weight() const { return weight_.view; }  // [width], the offset included
  float eps() const { return eps_; }
  float weight_offset() const { return weight_offset_; }

  // Replaces the weight by `stored`, as files have it, plus the offset: training does it after each
  // step.
  void set_values(Backend& backend, std::span<const float> stored);

 private:
  OwnedTensor weight_;  // [width] float32
  float eps_;
  float weight_offset_;
};

}  // namespace paceline
