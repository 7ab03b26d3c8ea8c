// Our own exp, tanh and erf on vectors: the same bits on every machine. The polynomials are minimax
// fits (Remez exchange) of the functions named beside them.
#pragma once

#include "kernels/cpu/vec.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

PL_INLINE Vec magnitude(Vec x) { return as_floats(as_bits(x) & 0x7FFFFFFFu); }
PL_INLINE Vec with_sign_of(Vec value, Vec sign) {
  return as_floats(as_bits(value) | (as_bits(sign) & 0x80000000u));
}

// About 1 ulp. Results below the normal range are 0: denormal ones would cost hundreds of cycles.
// NaN stays NaN.
PL_INLINE Vec exp(Vec x) {
  const Vec lowest = splat(-0x1.5d589ep6f);  // ln 2^-126, rounded up
  const Ints is_tiny = x < lowest;
  x = min(splat(89.0f), max(lowest, x));
  // n = x / ln 2 to the nearest integer: adding 1.5 * 2^23 leaves no bits for a fraction.
  const Vec magic = splat(0x1.8p23f);
  const Vec shifted = fma(x, splat(0x1.715476p0f), magic);
  const Vec n = shifted - magic;
  // ln 2 in two parts, the first so short that n times it is exact.
  Vec r = fma(n, splat(-0.693359375f), x);
  r = fma(n, splat(0x1.bd0106p-13f), r);
  // exp(r) = 1 + r + r^2 q(r) on |r| <= ln 2 / 2
  Vec q = fma(splat(0x1.6a23cap-10f), r, splat(0x1.123a20p-7f));
  q = fma(q, r, splat(0x1.5558f2p-5f));
  q = fma(q, r, splat(0x1.555492p-3f));
  q = fma(q, r, splat(0x1.fffffcp-2f));
  const Vec mantissa = fma(r * r, q, r) + 1.0f;
  return is_tiny ? Vec{} : scale_by_power(mantissa, n);
}

// About 2 ulp.
PL_INLINE Vec tanh(Vec x) {
  const Vec size = magnitude(x);
  // tanh(x) = x + x z P(z), z = x^2, on |x| <= 0.625
  const Vec z = x * x;
  Vec p = fma(splat(-0x1.76ac1ap-8f), z, splat(0x1.5256d8p-6f));
  p = fma(p, z, splat(-0x1.b84448p-5f));
  p = fma(p, z, splat(0x1.110768p-3f));
  p = fma(p, z, splat(-0x1.555534p-2f));
  const Vec near = fma(x * z, p, x);
  // tanh(x) = 1 - 2 / (exp(2 x) + 1)
  const Vec far = 1.0f - 2.0f / (exp(size + size) + 1.0f);
  return size < 0.625f ? near : with_sign_of(far, x);
}

// About 2 ulp.
PL_INLINE Vec erf(Vec x) {
  const Vec size = magnitude(x);
  // erf(x) = x P(x^2) on |x| <= 1
  const Vec z = x * x;
  Vec p = fma(splat(0x1.496a34p-14f), z, splat(-0x1.a3f700p-11f));
  p = fma(p, z, splat(0x1.5405b2p-8f));
  p = fma(p, z, splat(-0x1.b7f90ep-6f));
  p = fma(p, z, splat(0x1.ce2cf8p-4f));
  p = fma(p, z, splat(-0x1.81273ep-2f));
  p = fma(p, z, splat(0x1.20dd74p0f));
  const Vec near = x * p;
  // erfc(x) = exp(P(x)) on [1, 4]; erf rounds to 1 beyond
  const Vec t = min(splat(4.0f), size);
  Vec e = fma(splat(-0x1.6bd7d4p-16f), t, splat(0x1.cec5f6p-12f));
  e = fma(e, t, splat(-0x1.138cb8p-8f));
  e = fma(e, t, splat(0x1.9d0302p-6f));
  e = fma(e, t, splat(-0x1.bc1514p-4f));
  e = fma(e, t, splat(-0x1.443566p-1f));
  e = fma(e, t, splat(-0x1.212c0cp0f));
  e = fma(e, t, splat(0x1.8a5716p-13f));
  const Vec far = 1.0f - exp(e);
  return size < 1.0f ? near : with_sign_of(far, x);
}

// One lane of the vector function.
PL_INLINE float exp_one(float x) { return exp(splat(x))[0]; }

}  // namespace paceline::PACELINE_ISA_NAMESPACE
