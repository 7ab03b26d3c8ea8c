// Makes the kernels' description of a quantised PackedMatrix.
#pragma once

#include "kernels/cpu/group_task.h"
#include "kernels/packed_matrix.h"

namespace paceline {

inline GroupPanels group_panels(const PackedMatrix& matrix) {
  const Grouping& grouping = matrix.groups->grouping;
  return {.panels = matrix.storage.get(),
          .panel_bytes = matrix.panel_bytes(),
          .k = matrix.k,
          .group_size = grouping.group_size,
          .groups_per_factor = grouping.groups_per_factor,
          .input_length = shared_inputs(grouping, matrix.k),
          .bits = grouping.bits,
          .has_offsets = matrix.groups->has_offsets(),
          .zero_point = grouping.zero_point.value_or(0),
          .is_float8 = grouping.is_float8()};
}

}  // namespace paceline
