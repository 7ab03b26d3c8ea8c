// Where the parts of quantised panels and of their inputs stand.
#pragma once

#include "kernels/cpu/group_task.h"
#include "kernels/cpu/int_products.h"
#include "kernels/packed_groups.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

PL_INLINE int64_t num_groups(const GroupPanels& weights) { return weights.k / weights.group_size; }

// A group's record begins with its scales and, where it has them, its offsets.
PL_INLINE int64_t scale_bytes(const GroupPanels& weights) {
  return kPanelWidth * 2 * (weights.has_offsets ? 2 : 1);
}
PL_INLINE int64_t group_bytes(const GroupPanels& weights) {
  return scale_bytes(weights) + weights.group_size * kPanelWidth * weights.bits / 8;
}

// A row of inputs begins with its codes, as IntProduct::store_inputs leaves them; three numbers a
// group follow (GroupTask).
PL_INLINE int64_t input_code_bytes(const GroupPanels& weights) {
  return weights.k / 4 * IntProduct::kInputBytes;
}
PL_INLINE int64_t quantized_row_bytes(const GroupPanels& weights) {
  return input_code_bytes(weights) + num_groups(weights) * 12;
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
