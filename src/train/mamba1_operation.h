// Mamba 1 between the first and the last product of its layer, on arrays: two products of its own
// stand there, beside which LoRA may train.
#pragma once

#include <span>

#include "autodiff/array.h"
#include "layers/mamba1.h"
#include "train/linear_operation.h"
#include "train/mixer_operation.h"

namespace paceline {

// What of it is trained.
struct Mamba1Training {
  const LinearTraining& parts;          // the product of the convolved channels
  const LinearTraining& steps;          // that of their time steps
  std::span<const Tensor> own_weights;  // gradients of Mamba1::own_weights(), or none
};

// input [rows, outputs of the layer's first product] -> [rows, inputs of its last]. All must
// outlive the arrays.
autodiff::Array apply_mamba1(Backend& backend, const Mamba1& mamba, const Mamba1Training& training,
                             const Dropout& dropout, const LayerStates& states,
                             const autodiff::Array& input);

}  // namespace paceline
