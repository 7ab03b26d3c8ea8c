// AVX2 with FMA and F16C: 8 lanes. Included by vec.h alone.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace paceline::PACELINE_ISA_NAMESPACE {

constexpr int kLanes = 8;
// Vector registers that a tile of sums may fill.
constexpr int kAccumulators = 12;
using Vec = float __attribute__((vector_size(32)));
using Ints = int32_t __attribute__((vector_size(32)));
using Uints = uint32_t __attribute__((vector_size(32)));
using Bf16s = uint16_t __attribute__((vector_size(16)));

PL_INLINE Vec splat(float value) { return _mm256_set1_ps(value); }
PL_INLINE Uints splat_bits(uint32_t bits) {
  return (Uints)_mm256_set1_epi32(static_cast<int>(bits));
}
// a * b + c, rounded once.
PL_INLINE Vec fma(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }
// a < b ? b : a and a > b ? b : a; b when either is NaN.
PL_INLINE Vec max(Vec a, Vec b) { return _mm256_max_ps(a, b); }
PL_INLINE Vec min(Vec a, Vec b) { return _mm256_min_ps(a, b); }

PL_INLINE Uints widen_bits(Bf16s bits) { return (Uints)_mm256_cvtepu16_epi32((__m128i)bits); }
// Every lane fits 16 bits.
PL_INLINE Bf16s narrow_bits(Uints bits) {
  const __m256i all = (__m256i)bits;
  return (Bf16s)_mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
}
PL_INLINE Vec widen_f16(const void* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(from)));
}
PL_INLINE void narrow_f16(Vec value, void* to) {
  const __m128i narrow = _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  _mm_storeu_si128(static_cast<__m128i*>(to), narrow);
}

PL_INLINE Ints load_codes(const int8_t* from) {
  return (Ints)_mm256_cvtepi8_epi32(_mm_loadu_si64(from));
}
// Lanes from -128 to 127 as bytes.
PL_INLINE void store_codes(int8_t* to, Ints codes) {
  const __m256i all = (__m256i)codes;
  const __m128i words =
      _mm_packs_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
  _mm_storeu_si64(to, _mm_packs_epi16(words, words));
}

// value * 2^n for whole n from -252 to 254 and value in [1/2, 2], rounded once: in two steps, of
// which the first is exact, as 2^n may leave the normal range where the result doesn't.
PL_INLINE Vec scale_by_power(Vec value, Vec n) {
  const Vec magic = splat(0x1.8p23f);
  const Ints power = (Ints)(n + magic) - (Ints)magic;
  const Ints half = power >> 1;
  return value * (Vec)((half + 127) << 23) * (Vec)((power - half + 127) << 23);
}

PL_INLINE Ints lane_indices() { return Ints{0, 1, 2, 3, 4, 5, 6, 7}; }

PL_INLINE __m256i part_mask(int64_t count) {
  return (__m256i)(lane_indices() < static_cast<int32_t>(count));
}
PL_INLINE Vec load_part_bits(const float* from, int64_t count) {
  return _mm256_maskload_ps(from, part_mask(count));
}
PL_INLINE void store_part_bits(float* to, Vec value, int64_t count) {
  _mm256_maskstore_ps(to, part_mask(count), value);
}

// Over all lanes as a tree: halves, quarters, pairs.
PL_INLINE float reduce_add(Vec v) {
  const __m128 half = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
}
PL_INLINE float reduce_max(Vec v) {
  const __m128 half = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 pair = _mm_max_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_max_ss(pair, _mm_movehdup_ps(pair)));
}

// Elements 0, 2, 4... and 1, 3, 5... of `low` followed by `high`.
PL_INLINE Vec even_lanes(Vec low, Vec high) {
  return __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14);
}
PL_INLINE Vec odd_lanes(Vec low, Vec high) {
  return __builtin_shufflevector(low, high, 1, 3, 5, 7, 9, 11, 13, 15);
}
// The low, and the high, halves' lanes of two vectors in turn: a0 b0 a1 b1...
PL_INLINE Vec interleave_low(Vec a, Vec b) {
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}
PL_INLINE Vec interleave_high(Vec a, Vec b) {
  return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
