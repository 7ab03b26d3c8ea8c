// What one step along K multiplies, per weight type. Only the products of bfloat16 pairs differ by
// instruction set.
#pragma once

#include "kernels/cpu/vec.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

// A product defines
//   Weight, Input            elements of the panels and of the prepared rows
//   kDepth                   K values per step
//   kFactors                 multiply-adds per step
//   Factor                   a vector of weights or of one input, ready to be multiplied
//   weights<i>(bits), input<i>(x), multiply_add(acc, input, weights)

struct F32Product {
  using Weight = float;
  using Input = float;
  using Factor = Vec;
  using Raw = Vec;
  static constexpr int kDepth = 1;
  static constexpr int kFactors = 1;
  static constexpr int kInputsPerStep = 1;

  PL_INLINE Raw load_weights(const Weight* from) { return load(from); }
  template <int kFactor>
  PL_INLINE Factor weights(Raw raw) {
    return raw;
  }
  template <int kFactor>
  PL_INLINE Factor input(const Input* from) {
    return splat(*from);
  }
  PL_INLINE Vec multiply_add(Vec acc, Factor x, Factor w) { return fma(x, w, acc); }
};

struct F16Product : F32Product {
  using Weight = F16;
  PL_INLINE Raw load_weights(const Weight* from) { return load(from); }
};

#if defined(PACELINE_ISA_AVX512BF16)

// vdpbf16ps: each lane adds the odd product of its pair first, then the even one, both fused;
// denormals are zeros, in and out.
struct Bf16Product {
  using Weight = Bf16;
  using Input = uint32_t;  // two bfloat16
  using Factor = Uints;
  using Raw = Uints;
  static constexpr int kDepth = 2;
  static constexpr int kFactors = 1;
  static constexpr int kInputsPerStep = 1;

  PL_INLINE Raw load_weights(const Weight* from) { return load_bits(from); }
  template <int kFactor>
  PL_INLINE Factor weights(Raw raw) {
    return raw;
  }
  template <int kFactor>
  PL_INLINE Factor input(const Input* from) {
    return splat_bits(*from);
  }
  PL_INLINE Vec multiply_add(Vec acc, Factor x, Factor w) {
    return _mm512_dpbf16_ps(acc, (__m512bh)w, (__m512bh)x);
  }
};

#else

// Two float32 multiply-adds: the pair's even product, then its odd one.
struct Bf16Product {
  using Weight = Bf16;
  using Input = float;  // rounded to bfloat16
  using Factor = Vec;
  using Raw = Uints;
  static constexpr int kDepth = 2;
  static constexpr int kFactors = 2;
  static constexpr int kInputsPerStep = 2;

  PL_INLINE Raw load_weights(const Weight* from) { return load_bits(from); }
  template <int kFactor>
  PL_INLINE Factor weights(Raw raw) {
    return as_floats(kFactor == 0 ? raw << 16 : raw & 0xFFFF0000u);
  }
  template <int kFactor>
  PL_INLINE Factor input(const Input* from) {
    return splat(from[kFactor]);
  }
  PL_INLINE Vec multiply_add(Vec acc, Factor x, Factor w) { return fma(x, w, acc); }
};

#endif

}  // namespace paceline::PACELINE_ISA_NAMESPACE
