// TrainedMatrix is a trained matrix beside a decoder's weights, with the form in which products
// read it.
#pragma once

#include <optional>
#include <string>

#include "kernels/gradients.h"
#include "kernels/packed_matrix.h"
#include "tensor/tensor.h"
#include "train/packed_order.h"
#include "train/trained_parameter.h"

namespace paceline {

class Backend;

class TrainedMatrix final : public TrainedParameter {
 public:
  // Zeros [n, k]. Products read `scale` times the value, rounded to `dtype` (float32 or bfloat16),
  // with the rows in this order. Value and gradient are in the CPU's memory; what a pass adds to is
  // the backend's.
  TrainedMatrix(std::string path, Extents shape, DType dtype, float scale, Backend& backend,
                PackedOrder order = {});

  DType dtype() const { return dtype_; }
  float scale() const override { return scale_; }

  // After the value has changed. A value rounded to `dtype` is what is saved and served, so that is
  // what the pass reads, too.
  void pack();
  const PackedMatrix& packed() const { return packed_; }
  bool is_zero() const { return is_zero_; }

  // To this a pass adds; gradient() has it once it is complete.
  const Tensor& pass_gradient() const {
    return owned_pass_gradient_ ? owned_pass_gradient_->view : gradient();
  }
  void clear_gradient() const override;
  void complete_gradient() const override;

  // How products with it round their operands.
  OperandRounding rounding() const {
    return dtype_ == DType::bf16 ? OperandRounding::bfloat16 : OperandRounding::none;
  }

 private:
  TrainedMatrix(std::string path, DType dtype, float scale, Backend& backend, OwnedTensor value,
                OwnedTensor gradient, PackedOrder order);

  Backend& backend_;
  DType dtype_;
  float scale_;
  OwnedTensor owned_value_;
  OwnedTensor owned_gradient_;
  PackedOrder order_;
  // Where the order isn't the files', or the memory isn't the CPU's.
  std::optional<OwnedTensor> owned_pass_gradient_;
  PackedMatrix packed_;
  bool is_zero_ = true;
};

}  // namespace paceline
