// GroupedRowRange is some rows of a quantised matrix, at equal distances.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "tensor/grouped_rows.h"

namespace paceline {

class GroupedRowRange : public GroupedRows {
 public:
  // Rows first, first + step, ..., `count` of them.
  GroupedRowRange(std::shared_ptr<const GroupedRows> rows, int64_t first, int64_t count,
                  int64_t step)
      : rows_(std::move(rows)), first_(first), count_(count), step_(step) {}

  int64_t num_rows() const override { return count_; }
  int64_t row_length() const override { return rows_->row_length(); }
  Grouping grouping() const override { return rows_->grouping(); }
  std::span<const int32_t> column_order() const override { return rows_->column_order(); }
  DType value_dtype() const override { return rows_->value_dtype(); }
  void read_codes(int64_t row, std::span<uint8_t> codes, std::span<float> scales,
                  std::span<float> offsets) const override {
    rows_->read_codes(first_ + row * step_, codes, scales, offsets);
  }
  void read_multiples(int64_t row, std::span<uint8_t> codes,
                      const ScaleMultiples& multiples) const override {
    rows_->read_multiples(first_ + row * step_, codes, multiples);
  }
  void read_values(int64_t row, std::span<float> values) const override {
    rows_->read_values(first_ + row * step_, values);
  }
  // Those of all rows.
  std::vector<std::span<const std::byte>> stored_bytes() const override {
    return rows_->stored_bytes();
  }

 private:
  std::shared_ptr<const GroupedRows> rows_;
  int64_t first_;
  int64_t count_;
  int64_t step_;
};

}  // namespace paceline
