// The products of a decoder on arrays: a frozen Linear, with the matrices of LoRA (Hu et al., 2021)
// beside it.
#pragma once

#include <memory>
#include <vector>

#include "autodiff/array.h"
#include "layers/linear.h"
#include "train/dropout.h"
#include "train/trained_matrix.h"

namespace paceline {

// y[:, first_column..] += scale (x A^T) B^T, in some of a Linear's columns: one projection of those
// packed together.
struct LoraProjection {
  int64_t first_column = 0;
  TrainedMatrix* a = nullptr;  // [rank, in_features]
  TrainedMatrix* b = nullptr;  // [columns, rank]; it holds the scale
  uint64_t module = 0;         // names it in dropout
};

// x [rows, in_features] -> [rows, out_features], float32. The gradient of x is taken through the
// weights as the products read them; the gradients of A and B are added to theirs when the backward
// pass comes to the operation. A and B see x with dropped elements. All must outlive the arrays.
autodiff::Array apply_linear(Backend& backend, const Linear& linear,
                             const std::vector<LoraProjection>& loras, const Dropout& dropout,
                             const autodiff::Array& x);

}  // namespace paceline
