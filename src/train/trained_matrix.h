// TrainedMatrix is a trained matrix beside a decoder's weights, with the form in which products
// read it.
#pragma once

#include <string>

#include "kernels/gradients.h"
#include "kernels/packed_matrix.h"
#include "tensor/tensor.h"
#include "train/trained_parameter.h"

namespace paceline {

class Backend;

class TrainedMatrix final : public TrainedParameter {
 public:
  // Zeros [n, k]. Products read `scale` times the value, rounded to `dtype` (float32 or bfloat16).
  TrainedMatrix(std::string path, Extents shape, DType dtype, float scale, Memory& memory);

  DType dtype() const { return dtype_; }
  float scale() const override { return scale_; }

  // After the value has changed. A value rounded to `dtype` is what is saved and served, so that is
  // what the pass reads, too.
  void pack(Backend& backend);
  const PackedMatrix& packed() const { return packed_; }
  bool is_zero() const { return is_zero_; }

  // How products with it round their operands.
  OperandRounding rounding() const {
    return dtype_ == DType::bf16 ? OperandRounding::bfloat16 : OperandRounding::none;
  }

 private:
  TrainedMatrix(std::string path, DType dtype, float scale, OwnedTensor value,
                OwnedTensor gradient);

  DType dtype_;
  float scale_;
  OwnedTensor owned_value_;
  OwnedTensor owned_gradient_;
  PackedMatrix packed_;
  bool is_zero_ = true;
};

}  // namespace paceline
