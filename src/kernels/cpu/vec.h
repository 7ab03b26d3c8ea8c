// The vectors of the instruction set that a translation unit is compiled for. Only isa_*.cc include
// it.
#pragma once

// Everything here lives in the namespace of one instruction set and is inlined: the linker must
// never merge copies for all sets into one compiled for a newer processor.
#define PL_INLINE static inline __attribute__((always_inline))

#if defined(__AVX512F__)
#include "kernels/cpu/vec_avx512.h"
#elif defined(__AVX2__)
#include "kernels/cpu/vec_avx2.h"
#else
#include "kernels/cpu/vec_baseline.h"
#endif

namespace paceline::PACELINE_ISA_NAMESPACE {

// Storage of the 16-bit floats; their arithmetic is float32.
struct Bf16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

constexpr int kSecondLevel = 2;  // __builtin_prefetch() into the second-level cache

constexpr int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }
constexpr int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t max_of(int64_t a, int64_t b) { return a > b ? a : b; }

// Hides a value from the compiler, which would otherwise shorten loops that only measure, and
// reorder integer sums until their terms don't fit registers.
template <class Bits>
PL_INLINE void hide(Bits& bits) {
#if defined(__AVX512F__)
  __asm__("" : "+v"(bits));
#elif defined(__x86_64__)
  __asm__("" : "+x"(bits));
#else
  __asm__("" : "+m"(bits));
#endif
}

PL_INLINE Vec as_floats(Uints bits) { return (Vec)bits; }
PL_INLINE Uints as_bits(Vec value) { return (Uints)value; }

PL_INLINE Vec load(const float* from) {
  Vec value;
  __builtin_memcpy(&value, from, sizeof(value));
  return value;
}
PL_INLINE void store(float* to, Vec value) { __builtin_memcpy(to, &value, sizeof(value)); }

template <class T>
PL_INLINE T load_one(const char* from) {
  T value;
  __builtin_memcpy(&value, from, sizeof(value));
  return value;
}
PL_INLINE Uints load_bits(const void* from) {
  Uints value;
  __builtin_memcpy(&value, from, sizeof(value));
  return value;
}

// Widening is exact; narrowing rounds to nearest, ties to even, and keeps NaN a quiet NaN.
PL_INLINE Uints round_bits_to_bf16(Vec value) {
  const Uints bits = as_bits(value);
  const Uints rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const Uints quiet_nan = (bits >> 16) | 0x40u;
  return (bits & 0x7FFFFFFFu) > 0x7F800000u ? quiet_nan : rounded;
}

// A pair of bfloat16 in each lane.
PL_INLINE Uints pair_of_bf16(Vec low, Vec high) {
  return round_bits_to_bf16(low) | (round_bits_to_bf16(high) << 16);
}

PL_INLINE Vec load(const Bf16* from) {
  Bf16s values;
  __builtin_memcpy(&values, from, sizeof(values));
  return as_floats(widen_bits(values) << 16);
}
PL_INLINE void store(Bf16* to, Vec value) {
  const Bf16s narrow = narrow_bits(round_bits_to_bf16(value));
  __builtin_memcpy(to, &narrow, sizeof(narrow));
}

PL_INLINE Vec load(const F16* from) { return widen_f16(from); }
PL_INLINE void store(F16* to, Vec value) { narrow_f16(value, to); }

// Codes of 8 bits; exact both ways, for lanes that are whole numbers from -128 to 127.
PL_INLINE Vec load(const int8_t* from) { return __builtin_convertvector(load_codes(from), Vec); }
PL_INLINE void store(int8_t* to, Vec value) {
  store_codes(to, __builtin_convertvector(value, Ints));
}
// Whether a store of T keeps scales beside its elements.
template <class T>
constexpr bool kHasScales = false;
template <>
constexpr bool kHasScales<int8_t> = true;

// The first `count` (< kLanes) elements, then zeros; memory behind them isn't touched.
PL_INLINE Vec load_part(const float* from, int64_t count) { return load_part_bits(from, count); }
PL_INLINE void store_part(float* to, Vec value, int64_t count) {
  store_part_bits(to, value, count);
}

template <class T>
PL_INLINE Vec load_part(const T* from, int64_t count) {
  T values[kLanes] = {};
  __builtin_memcpy(values, from, static_cast<size_t>(count) * sizeof(T));
  return load(values);
}
template <class T>
PL_INLINE void store_part(T* to, Vec value, int64_t count) {
  T values[kLanes];
  store(values, value);
  __builtin_memcpy(to, values, static_cast<size_t>(count) * sizeof(T));
}

// Calls body(offset, count) over [0, size): count is kLanes but for the last.
template <class Body>
PL_INLINE void for_each_vector(int64_t size, Body&& body) {
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) body(i, int64_t{kLanes});
  if (i < size) body(i, size - i);
}

template <class T>
PL_INLINE Vec load_upto(const T* from, int64_t count) {
  return count == kLanes ? load(from) : load_part(from, count);
}
template <class T>
PL_INLINE void store_upto(T* to, Vec value, int64_t count) {
  if (count == kLanes) {
    store(to, value);
  } else {
    store_part(to, value, count);
  }
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
