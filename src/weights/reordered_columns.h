// ReorderedColumns is a quantised matrix whose file has its columns in another order.
#pragma once

#include <memory>
#include <vector>

#include "tensor/grouped_rows.h"
#include "weights/gguf_order.h"

namespace paceline {

class ReorderedColumns : public GroupedRows {
 public:
  // `rows` as in the file. Null where heads cut groups of columns with one scale, or where the
  // groups of a head couldn't share a factor: such a matrix can only be read as numbers. Heads may
  // cut groups that share a factor (128 columns in blocks of 256); then fewer groups share it.
  static std::shared_ptr<const GroupedRows> make(std::shared_ptr<const GroupedRows> rows,
                                                 const GgufHeadGroups& columns);

  int64_t num_rows() const override { return rows_->num_rows(); }
  int64_t row_length() const override { return rows_->row_length(); }
  Grouping grouping() const override { return grouping_; }
  DType value_dtype() const override { return rows_->value_dtype(); }
  void read_codes(int64_t row, std::span<uint8_t> codes, std::span<float> scales,
                  std::span<float> offsets) const override;
  void read_multiples(int64_t row, std::span<uint8_t> codes,
                      const ScaleMultiples& multiples) const override;
  void read_values(int64_t row, std::span<float> values) const override;
  std::vector<std::span<const std::byte>> stored_bytes() const override {
    return rows_->stored_bytes();
  }

 private:
  ReorderedColumns(std::shared_ptr<const GroupedRows> rows, const GgufHeadGroups& columns,
                   const Grouping& grouping)
      : rows_(std::move(rows)), columns_(columns), grouping_(grouping) {}

  // One number for each `unit` columns, from one for each `file_unit` columns of the file.
  template <class T>
  void reorder(std::span<const T> stored, int64_t file_unit, int64_t unit,
               std::span<T> numbers) const;

  std::shared_ptr<const GroupedRows> rows_;
  GgufHeadGroups columns_;
  Grouping grouping_;
};

}  // namespace paceline
