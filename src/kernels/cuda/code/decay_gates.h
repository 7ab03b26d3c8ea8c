// Gates of decay: -rate * log(1 + exp(x + bias)).
#pragma once

#include "kernels/cuda/code/elementwise.h"
#include "kernels/cuda/code/math.h"

namespace paceline::cuda {

// log(1 + exp(x)), about 1 ulp of float.
PL_DEVICE double softplus(float x) {
  if (!(x == x)) return x;
  const auto power = double{exponential(-magnitude(x))};
  constexpr double kSmall = 0x1p-20;  // below, the logarithm's series has the digits
  const double log = power < kSmall ? power - 0.5 * power * power : logarithm(1.0 + power);
  return x > 0.0f ? double{x} + log : log;
}

struct DecayGates {
  static constexpr std::string_view kName = "decay_gates";
  static constexpr uint32_t kThreads = kElementThreads;
  struct Params {
    ConstRows x;
    Rows out;  // may be x
    const float* bias = nullptr;
    const float* rates = nullptr;
    float low = 0.0f;  // bounds of the logarithm
    float high = 0.0f;
    int64_t width = 0;
  };
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const float* const x = p.x.row(block_index().x);
    float* const out = p.out.row(block_index().x);
    for_each_column(p.width, [&p, x, out](int64_t i) {
      double gate = softplus(x[i] + p.bias[i]);
      if (gate < double{p.low}) gate = double{p.low};
      if (gate > double{p.high}) gate = double{p.high};
      out[i] = static_cast<float>(-double{p.rates[i]} * gate);
    });
  }
};

}  // namespace paceline::cuda
