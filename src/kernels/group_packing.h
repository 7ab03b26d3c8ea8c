// Packing and unpacking of quantised matrices, for packed_matrix.cc and the reference.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/packed_matrix.h"

namespace paceline {

PackedMatrix gather_group_columns(const PackedMatrix& matrix, std::span<const int32_t> columns,
                                  Memory& memory);
void unpack_group_row(const PackedMatrix& matrix, int64_t n, float* out);

// One column of a panel of integers, in the order of the panel: its codes [k], and its scales and
// offsets [groups], multiplied by the column's factor.
struct GroupColumn {
  std::vector<uint8_t> codes;
  std::vector<float> scales;
  std::vector<float> offsets;
};
GroupColumn unpack_group_column(const PackedMatrix& matrix, int64_t n);

}  // namespace paceline
