// Float8Rows is a matrix of floats of 8 bits with scales.
#pragma once

#include "tensor/grouped_rows.h"
#include "tensor/tensor.h"
#include "weights/scale_grid.h"

namespace paceline {

// Products of an element and its block's scale in float32, rounded once to `dtype`.
class Float8Rows : public GroupedRows {
 public:
  // elements [rows, row length], contiguous; never owned, like the scales.
  Float8Rows(const Tensor& elements, const ScaleGrid& scales, DType dtype);

  // Whether kernels read such matrices as they are packed: rows of E4M3 that are whole groups of
  // 16, 32, 64 or 128 with one scale, as bfloat16.
  static bool kernels_read(DType elements, int64_t row_length, const ScaleLayout& layout,
                           DType dtype);
  // Whether they read such scales: products of one with any code are 0, or normal numbers.
  bool has_usual_scales() const;

  int64_t num_rows() const override { return elements_.size(0); }
  int64_t row_length() const override { return elements_.size(1); }
  // Of a matrix that kernels read. Long blocks are divided.
  Grouping grouping() const override { return float8_grouping(group_size_); }
  DType value_dtype() const override { return dtype_; }
  void read_codes(int64_t row, std::span<uint8_t> codes, std::span<float> scales,
                  std::span<float> offsets) const override;
  void read_values(int64_t row, std::span<float> values) const override;
  // The parts have digests of their own.
  std::vector<std::span<const std::byte>> stored_bytes() const override { return {}; }

 private:
  std::span<const uint8_t> row_of(int64_t row) const;
  std::vector<float> scales_of(int64_t row) const;

  Tensor elements_;
  ScaleGrid scales_;
  DType dtype_;
  int64_t group_size_;
};

}  // namespace paceline
