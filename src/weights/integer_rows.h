// IntegerRows is a matrix of integer codes with scales and zero points, of any published format.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tensor/grouped_rows.h"
#include "weights/code_source.h"
#include "weights/scale_grid.h"

namespace paceline {

// The parts of the matrix; they view tensors that must outlive it.
struct IntegerMatrix {
  int64_t rows = 0;
  int64_t row_length = 0;
  int bits = 4;  // every code is below 2^bits
  std::shared_ptr<const CodeSource> codes;
  ScaleGrid scales;  // its blocks of columns are the groups
  // The zero point is the sum of these: of every group the same number, a code, a number.
  int zero = 0;
  std::shared_ptr<const CodeSource> zero_codes = nullptr;  // [rows, groups]
  std::optional<ScaleGrid> zero_grid = {};                 // laid out like the scales
  std::optional<ScaleGrid> offset_grid = {};  // likewise: what is added to every element
  // The group of each column, where groups aren't neighbouring columns (GPTQ's act-order). Kernels
  // read such matrices whose groups are of the same size: column_order() sorts their columns.
  std::vector<int32_t> group_of = {};
  DType dtype = DType::bf16;  // of the values
};

// Element i of a row is scale * (code - zero point) + offset, computed in float32 and rounded once
// to the dtype.
class IntegerRows : public GroupedRows {
 public:
  explicit IntegerRows(IntegerMatrix matrix);

  // Whether kernels read codes of `bits` bits in rows of neighbouring columns with one scale as
  // they are packed: such a group is made of groups of 16, 32, 64 or 128.
  static bool kernels_read(int bits, int64_t group_size, int64_t row_length);
  // Whether each group has `group_size` columns.
  static bool are_equal_groups(std::span<const int32_t> group_of, int64_t group_size);

  int64_t num_rows() const override { return matrix_.rows; }
  int64_t row_length() const override { return matrix_.row_length; }
  // Of a matrix that kernels read. Long groups are divided.
  Grouping grouping() const override { return grouping_; }
  std::span<const int32_t> column_order() const override { return order_; }
  DType value_dtype() const override { return matrix_.dtype; }
  void read_codes(int64_t row, std::span<uint8_t> codes, std::span<float> scales,
                  std::span<float> offsets) const override;
  void read_values(int64_t row, std::span<float> values) const override;
  // The parts have digests of their own.
  std::vector<std::span<const std::byte>> stored_bytes() const override { return {}; }

 private:
  // The scale, zero point and offset of each stored group of a row.
  struct Groups {
    std::vector<float> scales, zeros, offsets;
  };
  Groups read_groups(int64_t row) const;
  std::optional<int> common_zero() const;

  IntegerMatrix matrix_;
  Grouping grouping_;
  std::vector<int32_t> order_;
};

}  // namespace paceline
