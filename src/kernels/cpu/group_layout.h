// Where the parts of quantised panels and of their inputs stand.
#pragma once

#include "kernels/cpu/group_task.h"
#include "kernels/cpu/int_products.h"
#include "kernels/packed_groups.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

// The records of a panel: scales, offsets where groups have their own, then the groups' multiples
// where they share scales, then their codes.
struct RecordLayout {
  bool has_offsets = false;
  int64_t groups_per_factor = 1;
  int64_t scale_bytes = 0;     // offsets included
  int64_t multiple_bytes = 0;  // of a group
  int64_t code_bytes = 0;      // of a group

  // With codes of so many bits: those of the panel, or 8 where it was widened.
  RecordLayout(const GroupPanels& weights, int bits)
      : has_offsets(weights.has_offsets), groups_per_factor(weights.groups_per_factor) {
    const int64_t numbers = kPanelWidth * (has_offsets ? 2 : 1);
    scale_bytes = numbers * 2;
    multiple_bytes = has_multiples() ? numbers : 0;
    code_bytes = weights.group_size * kPanelWidth * bits / 8;
  }
  explicit RecordLayout(const GroupPanels& weights) : RecordLayout(weights, weights.bits) {}

  bool has_multiples() const { return groups_per_factor > 1; }
  int64_t head_bytes() const { return scale_bytes + groups_per_factor * multiple_bytes; }
  int64_t bytes_of(int64_t num_groups) const {
    return num_groups / groups_per_factor * (head_bytes() + groups_per_factor * code_bytes);
  }
};

// One group after another.
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

// The scales of a group's columns from `lane` on, or (kIsOffset) its offsets.
template <bool kIsOffset = false>
PL_INLINE Vec load_scales(const RecordLayout& layout, const char* scales, const char* multiples,
                          int64_t lane) {
  const int64_t column = lane + (kIsOffset ? kPanelWidth : 0);
  const Vec factors = widen_f16(scales + column * 2);
  if (!layout.has_multiples()) return factors;
  return factors * load(reinterpret_cast<const int8_t*>(multiples) + column);
}

PL_INLINE int64_t num_groups(const GroupPanels& weights) { return weights.k / weights.group_size; }

// A row of inputs begins with its codes, as IntProduct::store_inputs leaves them; three numbers a
// group follow (GroupTask).
PL_INLINE int64_t input_code_bytes(const GroupPanels& weights) {
  return weights.k / 4 * IntProduct::kInputBytes;
}
PL_INLINE int64_t quantized_row_bytes(const GroupPanels& weights) {
  return input_code_bytes(weights) + num_groups(weights) * 12;
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
