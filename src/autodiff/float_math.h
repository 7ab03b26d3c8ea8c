// exp, tanh, erf and log in float32 and double, of operations that every machine rounds alike.
//
// The polynomials are the minimax fits of kernels/cpu/vec_math.h, here without fused multiply-add.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/portable_math.h"

namespace paceline::autodiff {

inline float power_of_two(int32_t exponent) {
  return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
}

// About 1 ulp; results below 2^-126 are 0, NaN stays NaN.
inline float float_exp(float x) {
  const float lowest = -0x1.5d589ep6f;  // ln 2^-126, rounded up
  float bounded = x < lowest ? lowest : x;
  bounded = bounded > 89.0f ? 89.0f : bounded;
  // n = x / ln 2 to the nearest integer: adding 1.5 * 2^23 leaves no bits for a fraction.
  const float magic = 0x1.8p23f;
  const float shifted = bounded * 0x1.715476p0f + magic;
  const float n = shifted - magic;
  // ln 2 in two parts, the first so short that n times it is exact.
  float r = bounded - n * 0.693359375f;
  r = r + n * 0x1.bd0106p-13f;
  float q = 0x1.6a23cap-10f * r + 0x1.123a20p-7f;
  q = q * r + 0x1.5558f2p-5f;
  q = q * r + 0x1.555492p-3f;
  q = q * r + 0x1.fffffcp-2f;
  const float mantissa = (r * r * q + r) + 1.0f;
  // 2^n in two factors: n may be 128. NaN has any n, and stays NaN.
  const uint32_t bits = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(magic);
  const int32_t exponent = static_cast<int32_t>(bits << 20) >> 20;
  const int32_t half = exponent >> 1;
  const float result = mantissa * power_of_two(half) * power_of_two(exponent - half);
  return x < lowest ? 0.0f : result;
}

// About 2 ulp.
inline float float_tanh(float x) {
  const float size = std::fabs(x);
  const float z = x * x;
  float p = -0x1.76ac1ap-8f * z + 0x1.5256d8p-6f;
  p = p * z - 0x1.b84448p-5f;
  p = p * z + 0x1.110768p-3f;
  p = p * z - 0x1.555534p-2f;
  const float near = x * z * p + x;
  const float far = 1.0f - 2.0f / (float_exp(size + size) + 1.0f);
  return size < 0.625f ? near : std::copysign(far, x);
}

// About 2 ulp.
inline float float_erf(float x) {
  const float size = std::fabs(x);
  const float z = x * x;
  float p = 0x1.496a34p-14f * z - 0x1.a3f700p-11f;
  p = p * z + 0x1.5405b2p-8f;
  p = p * z - 0x1.b7f90ep-6f;
  p = p * z + 0x1.ce2cf8p-4f;
  p = p * z - 0x1.81273ep-2f;
  p = p * z + 0x1.20dd74p0f;
  const float near = x * p;
  const float t = size > 4.0f ? 4.0f : size;
  float e = -0x1.6bd7d4p-16f * t + 0x1.cec5f6p-12f;
  e = e * t - 0x1.138cb8p-8f;
  e = e * t + 0x1.9d0302p-6f;
  e = e * t - 0x1.bc1514p-4f;
  e = e * t - 0x1.443566p-1f;
  e = e * t - 0x1.212c0cp0f;
  e = e * t + 0x1.8a5716p-13f;
  const float far = 1.0f - float_exp(e);
  return size < 1.0f ? near : std::copysign(far, x);
}

// 0 gives -infinity, negative numbers NaN.
inline double double_log(double x) {
  return x < 0.0 ? std::numeric_limits<double>::quiet_NaN() : portable_log(x);
}

inline float float_log(float x) { return static_cast<float>(double_log(double{x})); }

inline float float_sigmoid(float x) { return 1.0f / (1.0f + float_exp(-x)); }

// NaN where |x| is above 2^31.
inline SinCos sine_cosine(double x) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  return std::fabs(x) <= 0x1.0p31 ? portable_sin_cos(x) : SinCos{kNan, kNan};
}

}  // namespace paceline::autodiff
