// Transposes a square of lanes in registers.
#pragma once

#include "kernels/cpu/vec.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

// rows[i][j] and rows[j][i] change places. A stage interleaves row i with row i + kLanes / 2; the
// bits of (row, lane) move one place each time, so that after all stages the two have swapped.
PL_INLINE void transpose_square(Vec (&rows)[kLanes]) {
#pragma GCC unroll 4
  for (int size = 1; size < kLanes; size *= 2) {
    Vec next[kLanes];
#pragma GCC unroll 8
    for (int i = 0; i < kLanes / 2; ++i) {
      next[2 * i] = interleave_low(rows[i], rows[i + kLanes / 2]);
      next[2 * i + 1] = interleave_high(rows[i], rows[i + kLanes / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) rows[i] = next[i];
  }
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
