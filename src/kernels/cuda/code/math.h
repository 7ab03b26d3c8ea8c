// exp, tanh and erf: the same bits on every device and in the emulation. The polynomials are those
// of kernels/cpu/vec_math.h. In double log, sin and cos.
#pragma once

#include "base/portable_math.h"
#include "kernels/cuda/code/device_code.h"
#include "kernels/cuda/code/small_floats.h"

namespace paceline::cuda {

PL_DEVICE float magnitude(float x) { return float_of_bits(bits_of_float(x) & 0x7FFFFFFFu); }
PL_DEVICE float with_sign_of(float value, float sign) {
  return float_of_bits(bits_of_float(value) | (bits_of_float(sign) & 0x80000000u));
}
PL_DEVICE float larger(float a, float b) { return a > b ? a : b; }
PL_DEVICE float smaller(float a, float b) { return a < b ? a : b; }

// exp(x) = mantissa * 2^n with a whole n, for x where that is a float.
struct SplitExponential {
  float mantissa;
  float shifted;  // n plus 1.5 * 2^23, whose last bits are n

  PL_DEVICE float power() const { return shifted - kShift; }

  static constexpr float kShift = 0x1.8p23f;  // adding it rounds to an integer
};
PL_DEVICE SplitExponential split_exponential(float x) {
  const float shifted = fused_multiply_add(x, 0x1.715476p0f, SplitExponential::kShift);
  const float n = shifted - SplitExponential::kShift;
  // ln 2 in two parts, the first so short that n times it is exact.
  float r = fused_multiply_add(n, -0.693359375f, x);
  r = fused_multiply_add(n, 0x1.bd0106p-13f, r);
  float q = fused_multiply_add(0x1.6a23cap-10f, r, 0x1.123a20p-7f);
  q = fused_multiply_add(q, r, 0x1.5558f2p-5f);
  q = fused_multiply_add(q, r, 0x1.555492p-3f);
  q = fused_multiply_add(q, r, 0x1.fffffcp-2f);
  return {fused_multiply_add(r * r, q, r) + 1.0f, shifted};
}

constexpr float kLeastArgument = -0x1.5d589ep6f;  // ln 2^-126, rounded up

// About 1 ulp. Results below the normal range are 0, NaN stays NaN.
PL_DEVICE float exponential(float x) {
  if (x < kLeastArgument) return 0.0f;
  if (!(x <= 128.0f)) return x > 0.0f ? float_of_bits(0x7F800000u) : x;
  const SplitExponential split = split_exponential(x);
  // 2^n in two factors, each a float.
  const auto power = static_cast<int32_t>(split.power());
  const int32_t half = power / 2;
  return split.mantissa * float_of_bits(static_cast<uint32_t>(half + 127) << 23) *
         float_of_bits(static_cast<uint32_t>(power - half + 127) << 23);
}

// The bits of exponential() for x that isn't positive, or NaN, without a branch.
PL_DEVICE float exponential_below_one(float x) {
  const SplitExponential split = split_exponential(x);
  const float power = float_of_bits((bits_of_float(split.shifted) << 23) + 0x3F800000u);
  return x < kLeastArgument ? 0.0f : split.mantissa * power;
}

// x as f + n with a whole n and f of at most 1/2. What is below -127 counts as -127, NaN stays NaN.
struct SplitPower {
  float rest;   // f
  float power;  // 2^n, or 0 for -127
};
PL_DEVICE SplitPower split_power(float x) {
  constexpr float kShift = 0x1.8p23f + 127.0f;  // the last bits of a sum are n + 127
  const float clamped = maximum_or_nan(x, -127.0f);
  const float shifted = clamped + kShift;
  return {clamped - (shifted - kShift), float_of_bits(bits_of_float(shifted) << 23)};
}

// 2^x for x below 128, about 1 ulp; 0 for x below -126.5. A minimax polynomial of the relative
// error with p(0) = 1, so that 2^0 is 1.
PL_DEVICE float power_of_two(float x) {
  const SplitPower split = split_power(x);
  const float f = split.rest;
  float q = fused_multiply_add(0x1.41fbbcp-13f, f, 0x1.5f3e54p-10f);
  q = fused_multiply_add(q, f, 0x1.3b2d4cp-7f);
  q = fused_multiply_add(q, f, 0x1.c6aee8p-5f);
  q = fused_multiply_add(q, f, 0x1.ebfbdcp-3f);
  q = fused_multiply_add(q, f, 0x1.62e430p-1f);
  return fused_multiply_add(q, f, 1.0f) * split.power;
}

// The same with a relative error of up to 2.9e-6: for weights that are rounded to bfloat16, where
// softmax takes its time.
PL_DEVICE float rough_power_of_two(float x) {
  const SplitPower split = split_power(x);
  const float f = split.rest;
  float q = fused_multiply_add(0x1.3a02ccp-7f, f, 0x1.c9fc46p-5f);
  q = fused_multiply_add(q, f, 0x1.ec0378p-3f);
  q = fused_multiply_add(q, f, 0x1.62e12cp-1f);
  return fused_multiply_add(q, f, 1.0f) * split.power;
}

// About 2 ulp.
PL_DEVICE float hyperbolic_tangent(float x) {
  const float size = magnitude(x);
  if (size < 0.625f) {
    const float z = x * x;
    float p = fused_multiply_add(-0x1.76ac1ap-8f, z, 0x1.5256d8p-6f);
    p = fused_multiply_add(p, z, -0x1.b84448p-5f);
    p = fused_multiply_add(p, z, 0x1.110768p-3f);
    p = fused_multiply_add(p, z, -0x1.555534p-2f);
    return fused_multiply_add(x * z, p, x);
  }
  return with_sign_of(1.0f - 2.0f / (exponential(size + size) + 1.0f), x);
}

// About 2 ulp.
PL_DEVICE float error_function(float x) {
  const float size = magnitude(x);
  if (size < 1.0f) {
    const float z = x * x;
    float p = fused_multiply_add(0x1.496a34p-14f, z, -0x1.a3f700p-11f);
    p = fused_multiply_add(p, z, 0x1.5405b2p-8f);
    p = fused_multiply_add(p, z, -0x1.b7f90ep-6f);
    p = fused_multiply_add(p, z, 0x1.ce2cf8p-4f);
    p = fused_multiply_add(p, z, -0x1.81273ep-2f);
    p = fused_multiply_add(p, z, 0x1.20dd74p0f);
    return x * p;
  }
  const float t = size > 4.0f ? 4.0f : size;
  float e = fused_multiply_add(-0x1.6bd7d4p-16f, t, 0x1.cec5f6p-12f);
  e = fused_multiply_add(e, t, -0x1.138cb8p-8f);
  e = fused_multiply_add(e, t, 0x1.9d0302p-6f);
  e = fused_multiply_add(e, t, -0x1.bc1514p-4f);
  e = fused_multiply_add(e, t, -0x1.443566p-1f);
  e = fused_multiply_add(e, t, -0x1.212c0cp0f);
  e = fused_multiply_add(e, t, 0x1.8a5716p-13f);
  return with_sign_of(1.0f - exponential(e), x);
}

PL_DEVICE SinCos sin_cos(double x) { return portable_sin_cos(x); }
PL_DEVICE double logarithm(double x) { return portable_log(x); }

}  // namespace paceline::cuda
