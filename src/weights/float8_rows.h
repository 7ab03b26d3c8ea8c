// Float8Rows is a matrix of floats of 8 bits with scales.
#pragma once

#include "tensor/tensor.h"
#include "tensor/value_rows.h"
#include "weights/scale_grid.h"

namespace paceline {

// Products of an element and its block's scale in float32, rounded once to `dtype`.
class Float8Rows : public ValueRows {
 public:
  // elements [rows, row length], contiguous; never owned, like the scales.
  Float8Rows(const Tensor& elements, const ScaleGrid& scales, DType dtype)
      : elements_(elements), scales_(scales), dtype_(dtype) {}

  int64_t num_rows() const override { return elements_.size(0); }
  int64_t row_length() const override { return elements_.size(1); }
  DType value_dtype() const override { return dtype_; }
  void read_values(int64_t row, std::span<float> values) const override;

 private:
  Tensor elements_;
  ScaleGrid scales_;
  DType dtype_;
};

}  // namespace paceline
