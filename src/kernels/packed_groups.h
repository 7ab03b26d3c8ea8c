// PackedGroups is the layout of the panels of a quantised PackedMatrix: one per width of the codes
// and length of the groups, whatever format the weights came in.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/packed_layout.h"
#include "tensor/grouped_rows.h"

namespace paceline {

// How products with quantised weights round their inputs.
enum class ActivationType : uint8_t {
  // Rounded to 8 bits (symmetric, ties to even), with one scale per shared_inputs() of a row:
  // integer products.
  int8,
  bf16,  // rounded to bfloat16, as are the weights: the products of bfloat16 matrices
};

// What products with such weights round their inputs to, where `wanted` is asked for: codes that
// are floats have no integer products.
constexpr ActivationType activations_of(const Grouping& grouping, ActivationType wanted) {
  return grouping.is_float8() ? ActivationType::bf16 : wanted;
}

constexpr int64_t kPanelHeadBytes = kPanelWidth * 4;

// Where groups share factors, their inputs share scales, at most kMostSharedInputs each. The
// integer sums of the groups times their multiples then fit 32 bits (256 * 255 * 127 * 128 is below
// 2^31). llama.cpp also gives 256 inputs one scale there.
constexpr int64_t kMostSharedInputs = 256;
// Groups shorter than kOwnInputs share the scale of their inputs with their neighbours, up to
// kShortGroupInputs inputs where that divides a row: it saves a product in every sum of a group.
constexpr int64_t kShortGroupInputs = 128;
constexpr int64_t kOwnInputs = 64;

// The number of neighbouring inputs rounded with one scale, of a matrix with rows of `k` elements:
// those of a group, or of 2, 4, 8 or 16 groups.
constexpr int64_t shared_inputs(const Grouping& grouping, int64_t k) {
  if (grouping.has_multiples()) return std::min(grouping.factor_length(), kMostSharedInputs);
  int64_t length = grouping.group_size;
  if (length >= kOwnInputs) return length;
  while (length < kShortGroupInputs && k % (2 * length) == 0) length *= 2;
  return length;
}

// A panel of 32 columns is a head, [32] float32 factors of the columns, then one record per group:
//   scales   [32] float16, offsets [32] float16 where groups have their own
//   codes    a plane of their low bits, [group * width / 32][32][4] bytes, then of codes of 3, 5
//            and 6 bits a plane of their high bits (code_planes()). Byte b of word w holds elements
//            4 * j + b for all j of the word, the first in its lowest bits.
// Scales and offsets are stored divided by the factor of their column, a power of two that brings
// the largest near one, so that float16 is wide enough for any format. Groups that share factors
// have one record: the shared scales and offsets, as they are in the file; then each group's
// multiples, scales [32] int8 and offsets [32] int8; then each group's codes.
// Records of E4M3 are scales [32] float32, as they are in the file, then codes in the order of
// bfloat16 panels, [group / 2][32][2] (float8_place()); the factors are 1.
struct PackedGroups {
  Grouping grouping;
  ActivationType activations = ActivationType::int8;
  // K isn't in the order of the inputs: PackedMatrix::input_order().
  bool has_input_order = false;

  bool has_offsets() const { return !grouping.zero_point; }
  int64_t scale_bytes() const { return kPanelWidth * number_bytes() * (has_offsets() ? 2 : 1); }
  // Of a scale or an offset, and of the codes of a column that lie side by side.
  int64_t number_bytes() const { return grouping.is_float8() ? 4 : 2; }
  int64_t unit_bytes() const { return grouping.is_float8() ? 2 : 4; }
  int64_t multiple_bytes() const {
    return grouping.has_multiples() ? kPanelWidth * (has_offsets() ? 2 : 1) : 0;
  }
  int64_t code_bytes() const { return grouping.group_size * kPanelWidth * grouping.bits / 8; }
  int64_t record_bytes() const {
    return scale_bytes() + grouping.groups_per_factor * (multiple_bytes() + code_bytes());
  }

  // Where a group's parts stand, in bytes from the panel's head.
  struct Place {
    int64_t scales;
    int64_t multiples;
    int64_t codes;
  };
  Place place_of(int64_t group) const {
    const int64_t shared = grouping.groups_per_factor;
    const int64_t scales = kPanelHeadBytes + group / shared * record_bytes();
    const int64_t multiples = scales + scale_bytes();
    const int64_t codes = multiples + shared * multiple_bytes();
    const int64_t index = group % shared;
    return {scales, multiples + index * multiple_bytes(), codes + index * code_bytes()};
  }
};

// How many of a code's bits stand in the plane of low bits, and how many in that of high ones.
struct CodePlanes {
  int low = 0;
  int high = 0;
};
constexpr CodePlanes code_planes(int bits) {
  if (bits == 8) return {8, 0};
  return bits < 4 ? CodePlanes{2, bits - 2} : CodePlanes{4, bits - 4};
}

// Whether the planes of such codes fill whole words in every group.
constexpr bool can_pack_codes(int bits, int64_t group_size) {
  if (bits < 2 || bits > 8 || bits == 7) return false;
  return group_size % (code_planes(bits).high == 1 ? 32 : 16) == 0;
}

// Where element `k` of a group and a column stands in a plane with `width` bits per code.
struct CodePlace {
  int64_t byte;
  int shift;
};
constexpr CodePlace code_place(int width, int64_t k, int64_t column) {
  const int64_t j = k / 4, in_byte = 8 / width;
  return {(j / in_byte * kPanelWidth + column) * 4 + k % 4, static_cast<int>(j % in_byte) * width};
}

// Where the E4M3 of element `k` of a group and a column stands among the codes of a record.
constexpr int64_t float8_place(int64_t k, int64_t column) {
  return (k / 2 * kPanelWidth + column) * 2 + k % 2;
}

// The integer of element `k` of a column, in the codes of one group's record.
constexpr int read_code(const uint8_t* codes, int bits, int64_t group_size, int64_t k,
                        int64_t column) {
  const CodePlanes planes = code_planes(bits);
  const CodePlace low = code_place(planes.low, k, column);
  int code = codes[low.byte] >> low.shift & ((1 << planes.low) - 1);
  if (planes.high > 0) {
    const CodePlace high = code_place(planes.high, k, column);
    const uint8_t byte = codes[group_size * kPanelWidth * planes.low / 8 + high.byte];
    code |= (byte >> high.shift & ((1 << planes.high) - 1)) << planes.low;
  }
  return code;
}

}  // namespace paceline
