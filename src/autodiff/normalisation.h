// Operations on rows (the last dimension): softmax, log-sum-exp and norms.
//
// They compute in float32 and round once. Errors: invalid, with the shapes.
#pragma once

#include "autodiff/array.h"

namespace paceline::autodiff {

// exp(x - max) / sum(exp(x - max)); a row of -infinity alone becomes NaN.
Array softmax(const Array& x);
Array softmax(const Array& x, int axis);

// max + log(sum(exp(x - max))).  x [..., width], width > 0; the result [...]
Array log_sum_exp(const Array& x);

// x / sqrt(mean(x^2) + eps) * weight.  x [..., width], weight [width]
Array rms_norm(const Array& x, const Array& weight, float eps);

// (x - mean(x)) / sqrt(var(x) + eps) * weight + bias, with the variance over width (not width - 1),
// as torch.nn.LayerNorm.  x [..., width], weight and bias [width]
Array layer_norm(const Array& x, const Array& weight, const Array& bias, float eps);

}  // namespace paceline::autodiff
