// ScaleGrid is the scales of a quantised matrix, one for each block of its elements.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/tensor.h"

namespace paceline {

// How a matrix [rows, row length] is divided among scales.
struct ScaleLayout {
  int64_t block_rows = 1;  // neighbouring rows that share scales
  int64_t block_columns =
      1;                   // neighbouring columns that do; the last block of a row may be shorter
  int64_t row_stride = 0;  // between the scales of neighbouring blocks of rows, in elements
  int64_t column_stride = 1;  // the same of blocks of columns
  // Not 0: the scales of blocks of columns and of single rows lie in this many tiles of 128 rows
  // and 4 blocks side by side. In a tile rows are in the order 0, 32, 64, 96, 1, 33, ... (cuBLAS,
  // "1D block scaling factors layout").
  int64_t tiles_of_row = 0;
  static constexpr int64_t kTileRows = 128;
  static constexpr int64_t kTileGroups = 4;
};

class ScaleGrid {
 public:
  ScaleGrid() = default;
  // `values` holds floats of any width, or int8, contiguous; never owned.
  ScaleGrid(const Tensor& values, ScaleLayout layout) : values_(values), layout_(layout) {}

  // Every scale is also multiplied and divided by these.
  float factor = 1.0f;
  float divisor = 1.0f;

  const ScaleLayout& layout() const { return layout_; }
  // The dtype of the stored scales.
  DType dtype() const { return values_.dtype(); }
  // The scales of one row, as many as there are.
  void read_row(int64_t row, std::span<float> scales) const;
  // Whether no scale is NaN or infinite.
  bool all_finite() const;
  // Whether `holds` of every scale.
  bool all_of(bool (*holds)(float scale)) const;

 private:
  int64_t tiled_place(int64_t row, int64_t group) const;

  Tensor values_;
  ScaleLayout layout_;
};

}  // namespace paceline
