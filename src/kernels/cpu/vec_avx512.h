// AVX-512 (F, BW, DQ, VL): 16 lanes, masked tails. Included by vec.h alone.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace paceline::PACELINE_ISA_NAMESPACE {

constexpr int kLanes = 16;
// Vector registers that a tile of sums may fill.
constexpr int kAccumulators = 24;
using Vec = float __attribute__((vector_size(64)));
using Ints = int32_t __attribute__((vector_size(64)));
using Uints = uint32_t __attribute__((vector_size(64)));
using Bf16s = uint16_t __attribute__((vector_size(32)));

// GCC 12 takes the forms without a mask for uses of uninitialised variables (its bug 105593).
constexpr __mmask16 kAllLanes = 0xFFFF;

PL_INLINE Vec splat(float value) { return _mm512_set1_ps(value); }
PL_INLINE Uints splat_bits(uint32_t bits) {
  return (Uints)_mm512_set1_epi32(static_cast<int>(bits));
}
// a * b + c, rounded once.
PL_INLINE Vec fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
// a < b ? b : a and a > b ? b : a; b when either is NaN.
PL_INLINE Vec max(Vec a, Vec b) { return _mm512_maskz_max_ps(kAllLanes, a, b); }
PL_INLINE Vec min(Vec a, Vec b) { return _mm512_maskz_min_ps(kAllLanes, a, b); }

PL_INLINE Uints widen_bits(Bf16s bits) {
  return (Uints)_mm512_maskz_cvtepu16_epi32(kAllLanes, (__m256i)bits);
}
PL_INLINE Bf16s narrow_bits(Uints bits) {
  return (Bf16s)_mm512_maskz_cvtepi32_epi16(kAllLanes, (__m512i)bits);
}
PL_INLINE Vec widen_f16(const void* from) {
  return _mm512_maskz_cvtph_ps(kAllLanes, _mm256_loadu_si256(static_cast<const __m256i*>(from)));
}
PL_INLINE void narrow_f16(Vec value, void* to) {
  constexpr int kRounding = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  const __m256i narrow = _mm512_maskz_cvtps_ph(kAllLanes, value, kRounding);
  _mm256_storeu_si256(static_cast<__m256i*>(to), narrow);
}

PL_INLINE Ints load_codes(const int8_t* from) {
  const __m128i codes = _mm_loadu_si128((const __m128i_u*)from);
  return (Ints)_mm512_maskz_cvtepi8_epi32(kAllLanes, codes);
}
// Lanes from -128 to 127 as bytes.
PL_INLINE void store_codes(int8_t* to, Ints codes) {
  _mm_storeu_si128((__m128i_u*)to, _mm512_maskz_cvtepi32_epi8(kAllLanes, (__m512i)codes));
}

// value * 2^n for whole n, rounded once.
PL_INLINE Vec scale_by_power(Vec value, Vec n) {
  return _mm512_maskz_scalef_ps(kAllLanes, value, n);
}

PL_INLINE Vec load_part_bits(const float* from, int64_t count) {
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1u), from);
}
PL_INLINE void store_part_bits(float* to, Vec value, int64_t count) {
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1u << count) - 1u), value);
}

PL_INLINE __m256 low_half(Vec v) { return __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7); }
PL_INLINE __m256 high_half(Vec v) {
  return __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
}

// Over all lanes as a tree: halves, quarters, pairs.
PL_INLINE float reduce_add(Vec v) {
  const __m256 half = _mm256_add_ps(low_half(v), high_half(v));
  const __m128 quarter = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
  const __m128 pair = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
  return _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
}
PL_INLINE float reduce_max(Vec v) {
  const __m256 half = _mm256_max_ps(low_half(v), high_half(v));
  const __m128 quarter = _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
  const __m128 pair = _mm_max_ps(quarter, _mm_movehl_ps(quarter, quarter));
  return _mm_cvtss_f32(_mm_max_ss(pair, _mm_movehdup_ps(pair)));
}

// Elements 0, 2, 4... and 1, 3, 5... of `low` followed by `high`.
PL_INLINE Vec even_lanes(Vec low, Vec high) {
  return __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28,
                                 30);
}
PL_INLINE Vec odd_lanes(Vec low, Vec high) {
  return __builtin_shufflevector(low, high, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29,
                                 31);
}
// The low, and the high, halves' lanes of two vectors in turn: a0 b0 a1 b1...
PL_INLINE Vec interleave_low(Vec a, Vec b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
PL_INLINE Vec interleave_high(Vec a, Vec b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                 31);
}
PL_INLINE Ints lane_indices() { return Ints{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}; }

}  // namespace paceline::PACELINE_ISA_NAMESPACE
