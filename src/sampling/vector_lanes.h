// Four float lanes in the compiler's portable vector type: the same operations on every instruction
// set.
#pragma once

#include <cstdint>
#include <cstring>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace paceline {

using Floats4 = float __attribute__((vector_size(16)));
using Ints4 = int32_t __attribute__((vector_size(16)));
using Words4 = uint32_t __attribute__((vector_size(16)));
using Floats2 = float __attribute__((vector_size(8)));
using Doubles2 = double __attribute__((vector_size(16)));
using Longs2 = uint64_t __attribute__((vector_size(16)));

inline Floats4 load4(const float* from) {
  Floats4 lanes;
  std::memcpy(&lanes, from, sizeof(lanes));
  return lanes;
}

// a > b ? a : b in every lane, so b where either is NaN. The intrinsic is that very expression,
// which compilers don't recognise.
inline Floats4 larger(Floats4 a, Floats4 b) {
#ifdef __SSE2__
  return _mm_max_ps(a, b);
#else
  return a > b ? a : b;
#endif
}

}  // namespace paceline
