// How four unsigned codes of each lane meet four signed ones: the only code of integer products
// that differs by instruction set. Sums are exact, so all sets agree to the bit.
#pragma once

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "kernels/cpu/vec.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

// An integer product says
//   kInputBytes              of four inputs, as store_inputs leaves them
//   Weights, Input           four codes of every lane, four inputs of one row for all lanes
//   split(bits), input(from), dot(acc, weights, input)

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)

// vpdpbusd: four products of a byte each, added to the lane without saturation.
struct IntProduct {
  using Weights = Uints;
  using Input = Uints;
  static constexpr int kInputBytes = 4;

  PL_INLINE Weights split(Uints bits) { return bits; }
  PL_INLINE Input input(const char* from) {
    uint32_t codes = 0;
    __builtin_memcpy(&codes, from, sizeof(codes));
    return splat_bits(codes);
  }
  PL_INLINE Ints dot(Ints acc, Weights w, Input x) {
#if defined(__AVX512VNNI__)
    return (Ints)_mm512_dpbusd_epi32((__m512i)acc, (__m512i)w, (__m512i)x);
#else
    return (Ints)_mm256_dpbusd_avx_epi32((__m256i)acc, (__m256i)w, (__m256i)x);
#endif
  }
  PL_INLINE void store_inputs(const int8_t* codes, int64_t count, char* to) {
    __builtin_memcpy(to, codes, static_cast<size_t>(count));
  }
};

#else

// Pairs of 16 bits added in 32 (pmaddwd where there is one): bytes 0 and 2, then 1 and 3.
PL_INLINE Ints multiply_add_pairs(Uints a, Uints b) {
#if defined(__AVX512BW__)
  return (Ints)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
  return (Ints)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
  return (Ints)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
  const Ints low = ((Ints)(a << 16) >> 16) * ((Ints)(b << 16) >> 16);
  return low + ((Ints)a >> 16) * ((Ints)b >> 16);
#endif
}

struct IntProduct {
  struct Weights {
    Uints even;
    Uints odd;
  };
  using Input = Weights;
  static constexpr int kInputBytes = 8;

  PL_INLINE Weights split(Uints bits) { return {bits & 0x00FF00FFu, (bits >> 8) & 0x00FF00FFu}; }
  PL_INLINE Input input(const char* from) {
    uint32_t pairs[2];
    __builtin_memcpy(pairs, from, sizeof(pairs));
    return {splat_bits(pairs[0]), splat_bits(pairs[1])};
  }
  PL_INLINE Ints dot(Ints acc, Weights w, Input x) {
    return acc + multiply_add_pairs(w.even, x.even) + multiply_add_pairs(w.odd, x.odd);
  }
  PL_INLINE void store_inputs(const int8_t* codes, int64_t count, char* to) {
    for (int64_t i = 0; i < count; i += 4) {
      const int16_t pairs[4] = {codes[i], codes[i + 2], codes[i + 1], codes[i + 3]};
      __builtin_memcpy(to + i * 2, pairs, sizeof(pairs));
    }
  }
};

#endif

}  // namespace paceline::PACELINE_ISA_NAMESPACE
