// Operands of tile registers in bfloat16: two vectors of floats are rounded to one of halves.
#pragma once

#include "kernels/cpu/vec.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

using Halves = uint16_t __attribute__((vector_size(64)));

PL_INLINE Halves round_halves(Vec low, Vec high) {
  return (Halves)_mm512_cvtne2ps_pbh((__m512)high, (__m512)low);
}
PL_INLINE void store_halves(Bf16* to, Halves halves) {
  __builtin_memcpy(to, &halves, sizeof(halves));
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
