// ScaledColumns is a quantised matrix whose columns are multiplied by factors: those that its tool
// multiplies the inputs by (AWQ, SmoothQuant).
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "tensor/value_rows.h"
#include "weights/rounded_value.h"

namespace paceline {

class ScaledColumns : public ValueRows {
 public:
  // factors [row length]; `rows` hold float32 values. Products are rounded once to `dtype`.
  ScaledColumns(std::shared_ptr<const ValueRows> rows, std::vector<float> factors, DType dtype)
      : rows_(std::move(rows)), factors_(std::move(factors)), dtype_(dtype) {}

  int64_t num_rows() const override { return rows_->num_rows(); }
  int64_t row_length() const override { return rows_->row_length(); }
  DType value_dtype() const override { return dtype_; }
  void read_values(int64_t row, std::span<float> values) const override {
    rows_->read_values(row, values);
    for (size_t i = 0; i < values.size(); ++i) values[i] *= factors_[i];
    round_values(dtype_, values);
  }

 private:
  std::shared_ptr<const ValueRows> rows_;
  std::vector<float> factors_;
  DType dtype_;
};

}  // namespace paceline
