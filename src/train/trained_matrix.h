// TrainedMatrix is a matrix that training changes: its value, its gradient, and the form in which
// products read it.
#pragma once

#include <string>

#include "kernels/gradients.h"
#include "kernels/packed_matrix.h"
#include "tensor/tensor.h"

namespace paceline {

class Backend;

class TrainedMatrix {
 public:
  // Zeros. Products read `scale` times the value, rounded to `dtype` (float32 or bfloat16).
  TrainedMatrix(std::string path, Extents shape, DType dtype, float scale, Memory& memory);

  const std::string& path() const { return path_; }
  DType dtype() const { return dtype_; }
  const Tensor& value() const { return value_.view; }        // [n, k] float32
  const Tensor& gradient() const { return gradient_.view; }  // [n, k] float32, summed in place
  float scale() const { return scale_; }

  // After the value has changed. A value rounded to `dtype` is what is saved and served, so that is
  // what the pass reads, too.
  void pack(Backend& backend);
  const PackedMatrix& packed() const { return packed_; }
  bool is_zero() const { return is_zero_; }

  void clear_gradient();
  // How products with it round their operands.
  OperandRounding rounding() const {
    return dtype_ == DType::bf16 ? OperandRounding::bfloat16 : OperandRounding::none;
  }

 private:
  std::string path_;
  DType dtype_;
  float scale_;
  OwnedTensor value_;
  OwnedTensor gradient_;
  PackedMatrix packed_;
  bool is_zero_ = true;
};

}  // namespace paceline
