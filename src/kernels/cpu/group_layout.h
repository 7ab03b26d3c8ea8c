// The layout of quantised panels and of their inputs.
#pragma once

#include "kernels/cpu/group_task.h"
#include "kernels/cpu/int_products.h"
#include "kernels/packed_groups.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

constexpr int64_t kLineBytes = 64;

// The records of a panel: scales, offsets where groups have their own, then the groups' multiples
// where they share scales, then their codes.
struct RecordLayout {
  bool has_offsets = false;
  int64_t groups_per_factor = 1;
  int64_t groups_per_input = 1;  // groups whose inputs share a scale: a power of two
  int64_t scale_bytes = 0;       // offsets included
  int64_t multiple_bytes = 0;    // of a group
  int64_t code_bytes = 0;        // of a group

  // `bits` of a code: the panel's, or 8 where it was widened.
  RecordLayout(const GroupPanels& weights, int bits)
      : has_offsets(weights.has_offsets),
        groups_per_factor(weights.groups_per_factor),
        groups_per_input(weights.input_length / weights.group_size) {
    const int64_t numbers = kPanelWidth * (has_offsets ? 2 : 1);
    scale_bytes = numbers * (weights.is_float8 ? 4 : 2);
    multiple_bytes = has_multiples() ? numbers : 0;
    code_bytes = weights.group_size * kPanelWidth * bits / 8;
  }
  explicit RecordLayout(const GroupPanels& weights) : RecordLayout(weights, weights.bits) {}

  bool has_multiples() const { return groups_per_factor > 1; }
  // Whether several groups are totalled before they are multiplied by the scale of their inputs.
  // True wherever groups have multiples.
  bool has_totals() const { return groups_per_input > 1; }
  // Whether `group`, counted from the first of a total, is the last of one.
  bool ends_total(int64_t group) const { return ((group + 1) & (groups_per_input - 1)) == 0; }
  int64_t head_bytes() const { return scale_bytes + groups_per_factor * multiple_bytes; }
  int64_t bytes_of(int64_t num_groups) const {
    return num_groups / groups_per_factor * (head_bytes() + groups_per_factor * code_bytes);
  }
};

// Walks through the groups of a panel.
struct GroupCursor {
  const char* scales;  // of its record
  const char* multiples;
  const char* codes;
  int64_t left;  // of the record's groups

  GroupCursor(const RecordLayout& layout, const char* record) { begin(layout, record); }

  void begin(const RecordLayout& layout, const char* record) {
    scales = record;
    left = layout.groups_per_factor;
    multiples = record + layout.scale_bytes;
    codes = record + layout.head_bytes();
  }
  void advance(const RecordLayout& layout) {
    multiples += layout.multiple_bytes;
    codes += layout.code_bytes;
    if (--left == 0) begin(layout, codes);
  }
};

// For the columns from `lane` on, of their scales or (kIsOffset) their offsets: the factors in a
// record, a group's multiples of them, and the products of the two.
template <bool kIsOffset>
constexpr int64_t kFirstNumber = kIsOffset ? kPanelWidth : 0;

template <bool kIsOffset = false>
PL_INLINE Vec load_factors(const char* scales, int64_t lane) {
  return widen_f16(scales + (kFirstNumber<kIsOffset> + lane) * 2);
}
template <bool kIsOffset = false>
PL_INLINE Ints load_multiples(const char* multiples, int64_t lane) {
  return load_codes(reinterpret_cast<const int8_t*>(multiples) + kFirstNumber<kIsOffset> + lane);
}
template <bool kIsOffset = false>
PL_INLINE Vec load_scales(const RecordLayout& layout, const char* scales, const char* multiples,
                          int64_t lane) {
  const Vec factors = load_factors<kIsOffset>(scales, lane);
  if (!layout.has_multiples()) return factors;
  return factors * __builtin_convertvector(load_multiples<kIsOffset>(multiples, lane), Vec);
}
// The multiples of the offsets of two neighbouring groups, 16 bits each, the first in the low half.
PL_INLINE Uints load_offset_pairs(const RecordLayout& layout, const char* multiples, int64_t lane) {
  const Uints first = (Uints)load_multiples<true>(multiples, lane);
  const Uints second = (Uints)load_multiples<true>(multiples + layout.multiple_bytes, lane);
  return (first & 0xFFFFu) | (second << 16);
}

PL_INLINE int64_t num_groups(const GroupPanels& weights) { return weights.k / weights.group_size; }

// Bytes of the codes of `count` inputs, as the product's store_inputs leaves them.
PL_INLINE int64_t input_code_bytes(const GroupPanels& weights, int64_t count) {
  return count / 4 * with_product(weights.bits, [](auto product) { return product.kInputBytes; });
}
// A row of inputs begins with its codes; three numbers a group follow (GroupTask).
PL_INLINE int64_t input_code_bytes(const GroupPanels& weights) {
  return input_code_bytes(weights, weights.k);
}
// Bytes from the scale of a group to the sum of its inputs, or of their codes.
PL_INLINE int64_t input_sums(const GroupPanels& weights, int64_t group) {
  const int64_t sums = num_groups(weights) * 8;
  return weights.groups_per_factor == 1 ? sums : sums - group * 2;
}
PL_INLINE int64_t quantized_row_bytes(const GroupPanels& weights) {
  return input_code_bytes(weights) + num_groups(weights) * 12;
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
