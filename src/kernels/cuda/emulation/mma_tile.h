// mma.sync.m16n8k16 of bfloat16 with Hopper's arithmetic, bit for bit.
//
// Source: Xie et al., "MMA-Sim", arXiv 2511.10909, validated there on an H100. An element of d is
// one fused sum of 17 terms, the 16 products and the accumulator:
// - A value's exponent is that of its binade, -126 for subnormal ones and zero; a product's is the
//   sum of its factors' (its significand is then below 4).
// - Each term is truncated (towards zero) to a multiple of 2^(largest exponent - 25); those are
//   added exactly.
// - The sum is truncated to float32's 24 bits, subnormal ones to multiples of 2^-149; a sum of zero
//   is +0, one of 2^128 and more is infinite.
// - A NaN among the values, infinity times zero, or infinities of both signs give NaN (0x7FFFFFFF);
//   an infinity alone is the result.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/cuda/emulation/warp.h"

namespace paceline::cuda::emulation {

// The fused sum, for bits of bfloat16.
float fused_dot(const std::array<uint16_t, 16>& a, const std::array<uint16_t, 16>& b, float c);

// The operands of an instruction as pairs of elements along K, and its sums, before and after.
struct MmaOperands {
  uint32_t row_pairs[16][8];    // of a
  uint32_t column_pairs[8][8];  // of b
  alignas(32) float sums[16][8];
};
void multiply_operands(MmaOperands& operands);

// One instruction: `in` of a lane has a[4], b[2], d[4], `out` gets d[4].
void multiply_tile(LaneSlots& slots);

}  // namespace paceline::cuda::emulation
