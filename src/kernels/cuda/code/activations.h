// Activation functions of feed-forward networks, with the CPU's formulas.
#pragma once

#include "kernels/cuda/code/math.h"

namespace paceline::cuda {

// The values of paceline::Activation.
enum class ActivationKind : uint8_t { silu, gelu_tanh, gelu_erf, sigmoid, relu, clamped_swiglu };

PL_DEVICE float sigmoid(float x) { return 1.0f / (1.0f + exponential(-x)); }

// Not clamped_swiglu, which is no function of the gate alone.
PL_DEVICE float activate(ActivationKind kind, float x) {
  if (kind == ActivationKind::silu) return x / (1.0f + exponential(-x));
  if (kind == ActivationKind::sigmoid) return sigmoid(x);
  if (kind == ActivationKind::relu) return x < 0.0f ? 0.0f : x;
  // Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016): the tanh form and the exact one.
  if (kind == ActivationKind::gelu_tanh) {
    const float cubic = fused_multiply_add(x * x * x, 0.044715f, x);
    return x * 0.5f * (1.0f + hyperbolic_tangent(cubic * 0.7978845608f));
  }
  return x * 0.5f * (1.0f + error_function(x * 0.7071067812f));
}

// Calls body with the kind as a constant, so that no branch stands between activations.
template <class Body>
PL_DEVICE void with_activation(ActivationKind kind, Body&& body) {
  switch (kind) {
    case ActivationKind::silu:
      return body.template operator()<ActivationKind::silu>();
    case ActivationKind::gelu_tanh:
      return body.template operator()<ActivationKind::gelu_tanh>();
    case ActivationKind::gelu_erf:
      return body.template operator()<ActivationKind::gelu_erf>();
    case ActivationKind::sigmoid:
      return body.template operator()<ActivationKind::sigmoid>();
    case ActivationKind::relu:
      return body.template operator()<ActivationKind::relu>();
    case ActivationKind::clamped_swiglu:
      return body.template operator()<ActivationKind::clamped_swiglu>();
  }
}

// NaN stays NaN.
PL_DEVICE float clamped_swiglu(float gate, float up) {
  constexpr float kLimit = 7.0f;
  const float x = gate > kLimit ? kLimit : gate;
  const float above = up < -kLimit ? -kLimit : up;
  const float y = above > kLimit ? kLimit : above;
  return x / (1.0f + exponential(x * -1.702f)) * (y + 1.0f);
}

PL_DEVICE float activate_gate(ActivationKind kind, float gate, float up) {
  if (kind == ActivationKind::clamped_swiglu) return clamped_swiglu(gate, up);
  return activate(kind, gate) * up;
}

}  // namespace paceline::cuda
