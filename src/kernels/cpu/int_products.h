// Multiplies four unsigned codes of each lane by four signed ones: the only part of integer
// products that differs by instruction set. Sums are exact, so all sets agree to the bit.
#pragma once

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <type_traits>

#include "kernels/cpu/vec.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

// An integer product defines
//   kInputBytes       bytes of four inputs, as store_inputs leaves them
//   Input, input      four inputs of one row for all lanes
//   Weights, split    four codes of every lane
//   kWordElements     elements whose products are summed in 16 bits, or 0
//   Sum               of products: add(sum, weights, input); of 16 bits, end(sum, acc) adds it

// Multiplies pairs of 16 bits and adds each pair in 32.
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

// Bytes 0 and 2, then 1 and 3, as pairs of 16 bits, which are multiplied and added in one
// instruction.
struct PairProduct {
  struct Pairs {
    Uints even;
    Uints odd;
  };
  using Weights = Pairs;
  using Input = Pairs;
  static constexpr int kInputBytes = 8;
  static constexpr int kWordElements = 0;

  PL_INLINE Weights split(Uints bits) { return {bits & 0x00FF00FFu, high_bytes(bits)}; }
  PL_INLINE Input input(const char* from) {
    return {splat_bits(load_one<uint32_t>(from)), splat_bits(load_one<uint32_t>(from + 4))};
  }
  PL_INLINE Ints add(Ints sum, const Weights& w, const Input& x) {
    sum = sum + multiply_add_pairs(w.even, x.even);
    hide(sum);
    sum = sum + multiply_add_pairs(w.odd, x.odd);
    hide(sum);
    return sum;
  }
  PL_INLINE void store_inputs(const int8_t* codes, int64_t count, char* to) {
    for (int64_t i = 0; i < count; i += 4) {
      const int16_t pairs[4] = {codes[i], codes[i + 2], codes[i + 1], codes[i + 3]};
      __builtin_memcpy(to + i * 2, pairs, sizeof(pairs));
    }
  }

 private:
  PL_INLINE Uints high_bytes(Uints bits) {
#if defined(__AVX512BW__)
    return (Uints)_mm512_srli_epi16((__m512i)bits, 8);
#elif defined(__AVX2__)
    return (Uints)_mm256_srli_epi16((__m256i)bits, 8);
#else
    return (bits >> 8) & 0x00FF00FFu;
#endif
  }
};

#if defined(__AVX2__)

// Inputs that stay bytes.
struct ByteInputs {
  using Input = Uints;
  static constexpr int kInputBytes = 4;

  PL_INLINE Input input(const char* from) {
    uint32_t codes = 0;
    __builtin_memcpy(&codes, from, sizeof(codes));
    return splat_bits(codes);
  }
  PL_INLINE void store_inputs(const int8_t* codes, int64_t count, char* to) {
    __builtin_memcpy(to, codes, static_cast<size_t>(count));
  }
};

#endif

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)

// vpdpbusd: four products of a byte each, added to the lane without saturation.
struct ByteProduct : ByteInputs {
  using Weights = Uints;
  static constexpr int kWordElements = 0;

  PL_INLINE Weights split(Uints bits) { return bits; }
  PL_INLINE Ints add(Ints sum, Weights w, Input x) {
#if defined(__AVX512VNNI__)
    return (Ints)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)w, (__m512i)x);
#else
    return (Ints)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)w, (__m256i)x);
#endif
  }
};

template <int kBits>
using IntProduct = ByteProduct;

#elif defined(__AVX2__)

// vpmaddubsw, for codes of 4 bits: 8 steps of 2 * 15 * 127 fit 16 bits.
struct NibbleProduct : ByteInputs {
  using Weights = Uints;
  static constexpr int kWordElements = 32;

  PL_INLINE Weights split(Uints bits) { return bits; }
  PL_INLINE Ints add(Ints sum, Weights w, Input x) {
#if defined(__AVX512BW__)
    sum = (Ints)_mm512_add_epi16((__m512i)sum, _mm512_maddubs_epi16((__m512i)w, (__m512i)x));
#else
    sum = (Ints)_mm256_add_epi16((__m256i)sum, _mm256_maddubs_epi16((__m256i)w, (__m256i)x));
#endif
    hide(sum);
    return sum;
  }
  PL_INLINE Ints end(Ints words, Ints acc) {
    return acc + multiply_add_pairs((Uints)words, splat_bits(0x00010001u));
  }
};

template <int kBits>
using IntProduct = std::conditional_t<kBits == 4, NibbleProduct, PairProduct>;

#else

template <int kBits>
using IntProduct = PairProduct;

#endif

// The product of codes of `bits`; those of other widths than 4 may be widened to 8.
template <class Use>
PL_INLINE auto with_product(int bits, const Use& use) {
  return bits == 4 ? use(IntProduct<4>()) : use(IntProduct<8>());
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
