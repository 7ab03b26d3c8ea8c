// What the kernels of products take of matrices' columns and of inputs.
#pragma once

#include "base/divide_up.h"
#include "kernels/cuda/code/panel_products.h"
#include "kernels/cuda/operand_views.h"

namespace paceline::cuda {

inline PanelColumns panel_columns(const PackedColumns& columns) {
  return {.weights = plain_panels(*columns.matrix),
          .bias = columns.bias ? columns.bias->elements<float>() : nullptr,
          .first = columns.first};
}

inline GroupColumns group_columns(const PackedColumns& columns) {
  return {.weights = grouped_panels(*columns.matrix),
          .bias = columns.bias ? columns.bias->elements<float>() : nullptr,
          .first = columns.first};
}

// Tiles of `width` columns, which begin at multiples of it.
inline int64_t num_tiles(int64_t first_column, int64_t num_columns, int64_t width) {
  return divide_up(first_column + num_columns, width) - first_column / width;
}

inline int64_t num_segments(int64_t inputs) { return divide_up(inputs, kSegmentLength); }

inline int64_t num_panels(const PackedColumns& columns) {
  return num_tiles(columns.first, columns.count, kPanelWidth);
}

inline bool is_bf16(const PackedColumns& columns) {
  return !columns.matrix->groups && columns.matrix->dtype == DType::bf16;
}

// Calls run_blocks with the tiles and the segments that a block of few rows has at once, by the
// segments of K and by the shared memory of a block; kMost tiles of one segment. A block that
// multiplies two matrices needs a tile of each.
template <int kMatrices, uint32_t kMost, class SharedOfEight, class RunBlocks>
void with_few_tiles(int64_t inputs, size_t shared_bytes, RunBlocks&& run_blocks) {
  const int64_t segments = num_segments(inputs);
  if (segments == 1) return run_blocks.template operator()<kMost, 1>();
  if (segments == 2) return run_blocks.template operator()<4, 2>();
  if constexpr (kMatrices == 1) {
    if (segments > 4 && sizeof(SharedOfEight) <= shared_bytes) {
      return run_blocks.template operator()<1, 8>();
    }
  }
  run_blocks.template operator()<2, 4>();
}

// Whether a lane can copy 4 inputs at once.
inline bool can_copy_inputs(const Tensor& x) {
  constexpr int64_t kInputs = 4;
  return x.size(1) % kInputs == 0 && x.stride(0) % kInputs == 0 &&
         reinterpret_cast<uintptr_t>(x.raw()) % sizeof(Floats4) == 0;
}

}  // namespace paceline::cuda
