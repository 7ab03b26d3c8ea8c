// Sums over a row run in four vectors of lanes; the row's width alone fixes their order.
#pragma once

#include "kernels/cpu/vec.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

constexpr int kRowSums = 4;

// The sum of term(i, count) over all vectors of a row; lanes beyond `count` must be zero.
template <class Term>
PL_INLINE float sum_of(int64_t width, Term&& term) {
  Vec sums[kRowSums] = {};
  int64_t i = 0;
  for (; i + kRowSums * kLanes <= width; i += kRowSums * kLanes) {
#pragma GCC unroll 4
    for (int s = 0; s < kRowSums; ++s) sums[s] = sums[s] + term(i + s * kLanes, int64_t{kLanes});
  }
  for (; i < width; i += kLanes) sums[0] = sums[0] + term(i, min_of(width - i, kLanes));
  return reduce_add((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
