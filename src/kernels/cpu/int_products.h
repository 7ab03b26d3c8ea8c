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
//   kInputBytes                 bytes of four inputs, as store_inputs leaves them
//   code_bias(bits)             what tiles subtract from codes of that width: a sum starts from the
//                               bias times the inputs' sum
//   kReadsAnyWidth              whether tiles may read codes of any width, with the sums of 8 bits
//   Input, input(from)          four inputs of one row for all lanes
// and, where tiles read codes of kBits (4 or 8),
//   Weights<kBits>, split       four codes of every lane
//   Sum<kBits>                  of the products of kChunkElements: begin(acc), add, end(sum, acc)

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
struct IntProduct : ByteInputs {
  template <int kBits>
  using Weights = Uints;
  template <int kBits>
  using Sum = Ints;
  static constexpr bool kReadsAnyWidth = true;
  static constexpr int code_bias(int) { return 0; }

  template <int kBits>
  PL_INLINE Uints split(Uints bits) {
    return bits;
  }
  template <int kBits>
  PL_INLINE Ints begin(Ints acc) {
    return acc;
  }
  template <int kBits>
  PL_INLINE Ints add(Ints sum, Uints w, Input x) {
#if defined(__AVX512VNNI__)
    return (Ints)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)w, (__m512i)x);
#else
    return (Ints)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)w, (__m256i)x);
#endif
  }
  template <int kBits>
  PL_INLINE Ints end(Ints sum, Ints) {
    return sum;
  }
};

#elif defined(__AVX2__)

// Multiplies unsigned by signed bytes and adds each pair in 16 bits with saturation.
PL_INLINE Ints multiply_add_bytes(Uints a, Uints b) {
#if defined(__AVX512BW__)
  return (Ints)_mm512_maddubs_epi16((__m512i)a, (__m512i)b);
#else
  return (Ints)_mm256_maddubs_epi16((__m256i)a, (__m256i)b);
#endif
}
PL_INLINE Ints add_words(Ints a, Ints b) {
#if defined(__AVX512BW__)
  return (Ints)_mm512_add_epi16((__m512i)a, (__m512i)b);
#else
  return (Ints)_mm256_add_epi16((__m256i)a, (__m256i)b);
#endif
}
PL_INLINE Ints add_word_pairs(Ints words) {
  return multiply_add_pairs((Uints)words, splat_bits(0x00010001u));
}

// vpmaddubsw. Codes of 4 bits can't overflow 16 bits: 4 steps of 2 * 15 * 127. Codes of 8 bits are
// made signed and their signs moved to the inputs: 2 * 128 * 127 fits.
struct IntProduct : ByteInputs {
  struct SignedCodes {
    Uints magnitudes;
#if defined(__AVX512BW__)
    __mmask64 negative;
#else
    Uints codes;
#endif
  };
  template <int kBits>
  using Weights = std::conditional_t<kBits == 8, SignedCodes, Uints>;
  template <int kBits>
  using Sum = Ints;
  static constexpr bool kReadsAnyWidth = false;  // sums of 8 bits need signed codes
  static constexpr int code_bias(int bits) { return bits == 4 ? 0 : 128; }

  template <int kBits>
  PL_INLINE Weights<kBits> split(Uints bits) {
    if constexpr (kBits < 8) {
      return bits;
    } else {
      const Uints codes = bits ^ 0x80808080u;
#if defined(__AVX512BW__)
      return {(Uints)_mm512_abs_epi8((__m512i)codes), _mm512_movepi8_mask((__m512i)codes)};
#else
      return {(Uints)_mm256_abs_epi8((__m256i)codes), codes};
#endif
    }
  }
  template <int kBits>
  PL_INLINE Ints begin(Ints acc) {
    return kBits == 8 ? acc : Ints{};
  }
  template <int kBits>
  PL_INLINE Ints add(Ints sum, Weights<kBits> w, Input x) {
    if constexpr (kBits < 8) {
      return add_words(sum, multiply_add_bytes(w, x));
    } else {
      return sum + add_word_pairs(multiply_add_bytes(w.magnitudes, give_signs(x, w)));
    }
  }
  template <int kBits>
  PL_INLINE Ints end(Ints sum, Ints acc) {
    return kBits == 8 ? sum : acc + add_word_pairs(sum);
  }

 private:
  PL_INLINE Uints give_signs(Uints x, const SignedCodes& w) {
#if defined(__AVX512BW__)
    return (Uints)_mm512_mask_sub_epi8((__m512i)x, w.negative, __m512i{}, (__m512i)x);
#else
    return (Uints)_mm256_sign_epi8((__m256i)x, (__m256i)w.codes);
#endif
  }
};

#else

// Pairs of 16 bits: bytes 0 and 2, then 1 and 3.
struct IntProduct {
  struct Pairs {
    Uints even;
    Uints odd;
  };
  template <int kBits>
  using Weights = Pairs;
  template <int kBits>
  using Sum = Ints;
  using Input = Pairs;
  static constexpr int kInputBytes = 8;
  static constexpr bool kReadsAnyWidth = true;
  static constexpr int code_bias(int) { return 0; }

  template <int kBits>
  PL_INLINE Pairs split(Uints bits) {
    return {bits & 0x00FF00FFu, (bits >> 8) & 0x00FF00FFu};
  }
  PL_INLINE Input input(const char* from) {
    uint32_t pairs[2];
    __builtin_memcpy(pairs, from, sizeof(pairs));
    return {splat_bits(pairs[0]), splat_bits(pairs[1])};
  }
  template <int kBits>
  PL_INLINE Ints begin(Ints acc) {
    return acc;
  }
  template <int kBits>
  PL_INLINE Ints add(Ints sum, const Pairs& w, const Input& x) {
    return sum + multiply_add_pairs(w.even, x.even) + multiply_add_pairs(w.odd, x.odd);
  }
  template <int kBits>
  PL_INLINE Ints end(Ints sum, Ints) {
    return sum;
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
