// PackedGroups is how the panels of a quantised PackedMatrix are laid out: one layout per width of
// the codes and length of the groups, whatever format the weights came in.
#pragma once

#include <cstdint>

#include "kernels/packed_layout.h"
#include "tensor/grouped_rows.h"

namespace paceline {

// What products with quantised weights make of their inputs.
enum class ActivationType : uint8_t {
  int8,  // rounded to 8 bits per row and group (symmetric, ties to even): integer products
  bf16,  // rounded to bfloat16, as are the weights: the products of bfloat16 matrices
};

// A panel of 32 columns is a head, [32] float32 factors of the columns, then one record per group:
//   scales   [32] float16, offsets [32] float16 where groups have their own
//   codes    8 bits: [group / 4][32][4] bytes; 4 bits: [group / 8][32][4] bytes, whose low halves
//            are elements 0 to 3 of eight, the high halves 4 to 7
// Scales and offsets are stored divided by the factor of their column, a power of two that brings
// the largest near one, so that float16 is wide enough for any format.
struct PackedGroups {
  Grouping grouping;
  ActivationType activations = ActivationType::int8;

  bool has_offsets() const { return !grouping.zero_point; }
  int64_t scale_bytes() const { return kPanelWidth * 2 * (has_offsets() ? 2 : 1); }
  int64_t code_bytes() const { return grouping.group_size * kPanelWidth * grouping.bits / 8; }
  int64_t group_bytes() const { return scale_bytes() + code_bytes(); }
};

constexpr int64_t kPanelHeadBytes = kPanelWidth * 4;

// Where the code of element `k` of a group and a column stands in the record's codes, and by how
// much that byte is to be shifted right.
struct CodePlace {
  int64_t byte;
  int shift;
};
constexpr CodePlace code_place(int bits, int64_t k, int64_t column) {
  if (bits == 8) return {(k / 4 * kPanelWidth + column) * 4 + k % 4, 0};
  return {(k / 8 * kPanelWidth + column) * 4 + k % 4, k % 8 < 4 ? 0 : 4};
}

}  // namespace paceline
