// What an MLP computes before its last product, on arrays, with the bits of the serving forward.
#pragma once

#include "autodiff/array.h"
#include "layers/gated_mlp.h"
#include "train/linear_operation.h"

namespace paceline {

// GatedMlp::activate of the products of gate and up.   x [rows, hidden] -> [rows, inner]
// All must outlive the arrays.
autodiff::Array apply_mlp_inner(Backend& backend, const GatedMlp& mlp,
                                const LinearTraining& training, const Dropout& dropout,
                                const autodiff::Array& x);

}  // namespace paceline
