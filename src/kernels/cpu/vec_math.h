// Our own exp, tanh and erf on vectors, and log, sin and cos in double: the same bits on every
// machine. The polynomials are minimax fits (Remez exchange) of the functions named beside them.
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

struct SinCos {
  double sin;
  double cos;
};

// Errors are at most 2e-14 for |x| up to 4e6 and 1.2e-7 at 2^31 (measured with 200 bits).
PL_INLINE SinCos sin_cos(double x) {
  // x = n pi / 2 + r with pi / 2 in three parts, the first two short enough for exact products.
  const double magic = 0x1.8p52;
  const double n = (x * 0x1.45f306dc9c883p-1 + magic) - magic;
  const double r = ((x - n * 0x1.921fb544p0) - n * 0x1.0b4611a6p-34) - n * 0x1.3198a2e037073p-69;
  const double z = r * r;
  // Taylor series on |r| <= pi / 4.
  double s = 1.0 / 6227020800.0;
  s = s * z - 1.0 / 39916800.0;
  s = s * z + 1.0 / 362880.0;
  s = s * z - 1.0 / 5040.0;
  s = s * z + 1.0 / 120.0;
  s = s * z - 1.0 / 6.0;
  s = r + r * z * s;
  double c = 1.0 / 479001600.0 - z * (1.0 / 87178291200.0);
  c = c * z - 1.0 / 3628800.0;
  c = c * z + 1.0 / 40320.0;
  c = c * z - 1.0 / 720.0;
  c = c * z + 1.0 / 24.0;
  c = c * z - 0.5;
  c = 1.0 + z * c;
  const int64_t quadrant = static_cast<int64_t>(n) & 3;
  const double sine = quadrant & 1 ? c : s;
  const double cosine = quadrant & 1 ? s : c;
  return {quadrant & 2 ? -sine : sine, (quadrant + 1) & 2 ? -cosine : cosine};
}

// For positive normal x; 0 gives -infinity, infinity and NaN themselves.
PL_INLINE double log_one(double x) {
  if (x == 0.0) return -__builtin_inf();
  if (!(x < __builtin_inf())) return x;
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &x, sizeof(bits));
  // x = 2^power m with m in [sqrt(1/2), sqrt(2)).
  const uint64_t offset = bits - 0x3FE6A09E667F3BCDu;
  const auto power = static_cast<double>(static_cast<int64_t>(offset) >> 52);
  bits = 0x3FE6A09E667F3BCDu + (offset & 0x000FFFFFFFFFFFFFu);
  double m = 0.0;
  __builtin_memcpy(&m, &bits, sizeof(m));
  // log(m) = 2 atanh(s), s = (m - 1) / (m + 1), as a series.
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  double p = 1.0 / 17.0;
  p = p * z + 1.0 / 15.0;
  p = p * z + 1.0 / 13.0;
  p = p * z + 1.0 / 11.0;
  p = p * z + 1.0 / 9.0;
  p = p * z + 1.0 / 7.0;
  p = p * z + 1.0 / 5.0;
  p = p * z + 1.0 / 3.0;
  return power * 0x1.62e42fefa39efp-1 + (2.0 * s + 2.0 * s * z * p);
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
