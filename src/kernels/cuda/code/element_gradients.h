// Gradients of operations that take each element of a row by itself, and elements rounded as they
// are stored: rows along x of the grid, columns along y.
#pragma once

#include "kernels/cuda/code/element_types.h"
#include "kernels/cuda/code/elementwise.h"

namespace paceline::cuda {

struct ValueAndSlope {
  float value;
  float slope;
};

// Of clamped_swiglu the function of the clamped gate.
PL_DEVICE ValueAndSlope activation_slope(ActivationKind kind, float x) {
  if (kind == ActivationKind::relu) return {x < 0.0f ? 0.0f : x, x > 0.0f ? 1.0f : 0.0f};
  if (kind == ActivationKind::gelu_tanh) {
    const float square = x * x;
    const float cubic = fused_multiply_add(square * x, 0.044715f, x);
    const float bent = hyperbolic_tangent(cubic * 0.7978845608f);
    const float inner = 0.7978845608f * fused_multiply_add(square, 3.0f * 0.044715f, 1.0f);
    const float share = 0.5f * (1.0f + bent);
    return {x * share, fused_multiply_add(0.5f * x * (1.0f - bent * bent), inner, share)};
  }
  if (kind == ActivationKind::gelu_erf) {
    const float share = 0.5f * (1.0f + error_function(x * 0.7071067812f));
    const float density = 0.3989422804f * exponential(-0.5f * x * x);
    return {x * share, fused_multiply_add(x, density, share)};
  }
  const float steepness = kind == ActivationKind::clamped_swiglu ? 1.702f : 1.0f;
  const float share = sigmoid(steepness * x), slope = share * (1.0f - share);
  if (kind == ActivationKind::sigmoid) return {share, slope};
  return {x * share, fused_multiply_add(steepness * x, slope, share)};
}

struct ActivationGradient {
  static constexpr std::string_view kName = "activation_gradient";
  static constexpr uint32_t kThreads = kElementThreads;
  using Params = ElementParams;  // y: the gradient of the outputs
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const float* const x = p.x.row(block_index().x);
    const float* const dout = p.y.row(block_index().x);
    float* const dx = p.out.row(block_index().x);
    const ActivationKind kind = p.activation;
    for_each_column(p.width,
                    [=](int64_t i) { dx[i] = dout[i] * activation_slope(kind, x[i]).slope; });
  }
};

struct GateGradient {
  static constexpr std::string_view kName = "gate_gradient";
  static constexpr uint32_t kThreads = kElementThreads;
  struct Params {
    ConstRows gate, up, dout;
    Rows dgate, dup;  // may be gate and up
    int64_t width = 0;
    ActivationKind activation = ActivationKind::silu;
  };
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const int64_t row = block_index().x;
    for_each_column(p.width, [&p, row](int64_t i) {
      const float gate = p.gate.row(row)[i], up = p.up.row(row)[i], dout = p.dout.row(row)[i];
      const Pair pair = p.activation == ActivationKind::clamped_swiglu
                            ? clamped(gate, up, dout)
                            : of(activation_slope(p.activation, gate), up, dout);
      p.dgate.row(row)[i] = pair.gate;
      p.dup.row(row)[i] = pair.up;
    });
  }

 private:
  struct Pair {
    float gate, up;
  };
  PL_DEVICE static Pair of(const ValueAndSlope& gate, float up, float dout) {
    return {dout * up * gate.slope, dout * gate.value};
  }
  // A clamped input has no gradient.
  PL_DEVICE static Pair clamped(float gate, float up, float dout) {
    constexpr float kLimit = 7.0f;
    const float above = up < -kLimit ? -kLimit : up;
    const float offset_up = (above > kLimit ? kLimit : above) + 1.0f;
    const ValueAndSlope of_gate =
        activation_slope(ActivationKind::clamped_swiglu, gate > kLimit ? kLimit : gate);
    const Pair pair = of(of_gate, offset_up, dout);
    return {gate > kLimit ? 0.0f : pair.gate, magnitude(up) > kLimit ? 0.0f : pair.up};
  }
};

struct SoftCapGradient {
  static constexpr std::string_view kName = "soft_cap_gradient";
  static constexpr uint32_t kThreads = kElementThreads;
  using Params = ElementParams;  // y: the gradient of the outputs; number: the cap
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const float* const x = p.x.row(block_index().x);
    const float* const dy = p.y.row(block_index().x);
    float* const dx = p.out.row(block_index().x);
    const float cap = p.number;
    for_each_column(p.width, [=](int64_t i) {
      const float bent = hyperbolic_tangent(x[i] / cap);
      dx[i] = dy[i] * (1.0f - bent * bent);
    });
  }
};

// Elements rounded to a type and back; float32 copies them.
template <class Stored>
struct CopyRounded {
  static constexpr std::string_view kName =
      TypeNames{.f32 = "copy_rounded_f32", .f16 = "copy_rounded_f16", .bf16 = "copy_rounded_bf16"}
          .of<Stored>();
  static constexpr uint32_t kThreads = kElementThreads;
  struct Params {
    Heads x;
    Heads out;  // may be x
    int64_t head_dim = 0;
  };
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const auto dims = static_cast<uint32_t>(p.head_dim);
    const int64_t row = block_index().x;
    for_each_column(p.x.heads * p.head_dim, [&p, dims, row](int64_t i) {
      const uint32_t head = static_cast<uint32_t>(i) / dims, d = static_cast<uint32_t>(i) % dims;
      Stored stored;
      assign_float(p.x.head(row, head)[d], stored);
      p.out.head(row, head)[d] = to_float(stored);
    });
  }
};

}  // namespace paceline::cuda
