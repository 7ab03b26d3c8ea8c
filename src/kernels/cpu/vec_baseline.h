// Four lanes in the compilers' own vectors: SSE2 on x86-64, and any other processor. Included by
// vec.h alone.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paceline::PACELINE_ISA_NAMESPACE {

constexpr int kLanes = 4;
// Vector registers that a tile of sums may fill.
constexpr int kAccumulators = 12;
using Vec = float __attribute__((vector_size(16)));
using Ints = int32_t __attribute__((vector_size(16)));
using Uints = uint32_t __attribute__((vector_size(16)));
using Bf16s = uint16_t __attribute__((vector_size(8)));

PL_INLINE Vec splat(float value) { return Vec{value, value, value, value}; }
PL_INLINE Uints splat_bits(uint32_t bits) { return Uints{bits, bits, bits, bits}; }
// a * b + c, rounded twice: there is no fused instruction.
PL_INLINE Vec fma(Vec a, Vec b, Vec c) { return a * b + c; }
// a < b ? b : a and a > b ? b : a; b when either is NaN.
PL_INLINE Vec max(Vec a, Vec b) { return a > b ? a : b; }
PL_INLINE Vec min(Vec a, Vec b) { return a < b ? a : b; }

PL_INLINE Uints widen_bits(Bf16s bits) { return __builtin_convertvector(bits, Uints); }
PL_INLINE Bf16s narrow_bits(Uints bits) { return __builtin_convertvector(bits, Bf16s); }

// Exact: the exponent is rebased by a multiplication, which also normalises denormals.
PL_INLINE Vec widen_f16(const void* from) {
  Bf16s narrow;
  __builtin_memcpy(&narrow, from, sizeof(narrow));
  const Uints half = __builtin_convertvector(narrow, Uints);
  const Uints magnitude = half & 0x7FFFu;
  const Uints rebased = (Uints)((Vec)(magnitude << 13) * 0x1p112f);
  const Uints special = (magnitude << 13) | 0x7F800000u;  // infinity and NaN
  const Uints bits = magnitude >= 0x7C00u ? special : rebased;
  return (Vec)(bits | ((half & 0x8000u) << 16));
}

// Rounds one magnitude (sign cleared) to a float16's bits. Normal results round in integers,
// denormal ones by adding a number whose last place is that of float16 denormals.
PL_INLINE Uints round_magnitude_to_f16(Uints bits) {
  const Uints odd = (bits >> 13) & 1u;
  const Uints normal = (bits + 0xC8000FFFu + odd) >> 13;  // rebases the exponent by -112
  const Uints denormal = (Uints)((Vec)bits + 0.5f) - 0x3F000000u;
  const Uints finite = bits < 0x38800000u ? denormal : normal;
  const Uints infinite = splat_bits(0x7C00u);
  const Uints bounded = bits >= 0x477FF000u ? infinite : finite;
  return bits > 0x7F800000u ? (0x7E00u | ((bits >> 13) & 0x3FFu)) : bounded;
}
PL_INLINE void narrow_f16(Vec value, void* to) {
  const Uints bits = (Uints)value;
  const Uints half = round_magnitude_to_f16(bits & 0x7FFFFFFFu) | ((bits >> 16) & 0x8000u);
  const Bf16s narrow = __builtin_convertvector(half, Bf16s);
  __builtin_memcpy(to, &narrow, sizeof(narrow));
}

// Moves each code to the top of its lane and back down, which extends its sign.
PL_INLINE Ints load_codes(const int8_t* from) {
  using Bytes = int8_t __attribute__((vector_size(16)));
  using Words = int16_t __attribute__((vector_size(16)));
  int32_t four = 0;
  __builtin_memcpy(&four, from, sizeof(four));
  const Bytes codes = (Bytes)Ints{four, 0, 0, 0};
  const auto high = (Words)__builtin_shufflevector(Bytes{}, codes, 0, 16, 1, 17, 2, 18, 3, 19, 4,
                                                   20, 5, 21, 6, 22, 7, 23);
  return (Ints)__builtin_shufflevector(Words{}, high, 0, 8, 1, 9, 2, 10, 3, 11) >> 24;
}
// Lanes from -128 to 127 as bytes.
PL_INLINE void store_codes(int8_t* to, Ints codes) {
  for (int i = 0; i < kLanes; ++i) to[i] = static_cast<int8_t>(codes[i]);
}

// value * 2^n for whole n from -252 to 254 and value in [1/2, 2], rounded once: in two steps, of
// which the first is exact, as 2^n may leave the normal range where the result doesn't.
PL_INLINE Vec scale_by_power(Vec value, Vec n) {
  const Vec magic = splat(0x1.8p23f);
  const Ints power = (Ints)(n + magic) - (Ints)magic;
  const Ints half = power >> 1;
  return value * (Vec)((half + 127) << 23) * (Vec)((power - half + 127) << 23);
}

PL_INLINE Vec load_part_bits(const float* from, int64_t count) {
  Vec value = {};
  __builtin_memcpy(&value, from, static_cast<size_t>(count) * sizeof(float));
  return value;
}
PL_INLINE void store_part_bits(float* to, Vec value, int64_t count) {
  __builtin_memcpy(to, &value, static_cast<size_t>(count) * sizeof(float));
}

// Over all lanes as a tree: halves, pairs.
PL_INLINE float reduce_add(Vec v) { return (v[0] + v[2]) + (v[1] + v[3]); }
PL_INLINE float reduce_max(Vec v) {
  const float even = v[0] > v[2] ? v[0] : v[2];
  const float odd = v[1] > v[3] ? v[1] : v[3];
  return even > odd ? even : odd;
}

// Elements 0, 2 and 1, 3 of `low` followed by those of `high`.
PL_INLINE Vec even_lanes(Vec low, Vec high) {
  return __builtin_shufflevector(low, high, 0, 2, 4, 6);
}
PL_INLINE Vec odd_lanes(Vec low, Vec high) {
  return __builtin_shufflevector(low, high, 1, 3, 5, 7);
}
// The low, and the high, halves' lanes of two vectors in turn: a0 b0 a1 b1.
PL_INLINE Vec interleave_low(Vec a, Vec b) { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }
PL_INLINE Vec interleave_high(Vec a, Vec b) { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }
PL_INLINE Ints lane_indices() { return Ints{0, 1, 2, 3}; }

}  // namespace paceline::PACELINE_ISA_NAMESPACE
