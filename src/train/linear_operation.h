// The products of a decoder on arrays: a Linear whose weights are trained or frozen, with the
// matrices of LoRA (Hu et al., 2021) beside it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "autodiff/array.h"
#include "layers/linear.h"
#include "train/dropout.h"
#include "train/trained_matrix.h"

namespace paceline {

// Whether an operation computes its output: one that nothing reads needs a shape alone.
enum class Elements : uint8_t { computed, none };

// y[:, first_column..] += scale (x A^T) B^T, in some of a Linear's columns: one projection of those
// packed together.
struct LoraProjection {
  int64_t first_column = 0;
  TrainedMatrix* a = nullptr;  // [rank, in_features]
  TrainedMatrix* b = nullptr;  // [columns, rank]; it holds the scale
  uint64_t module = 0;         // names it in dropout
};

// What is trained of a Linear.
struct LinearTraining {
  std::vector<LoraProjection> loras;
  // To these the gradients of its own values are added; nothing: they aren't trained. Float32.
  std::optional<Tensor> weight_gradient;  // [out_features, in_features]; of plain weights
  std::optional<Tensor> bias_gradient;    // [out_features]
};

// x [rows, in_features] -> [rows, out_features], float32. The gradient of x is taken through the
// weights as the products read them; the gradients of what is trained are added to theirs when the
// backward pass comes to the operation. A and B see x with dropped elements. All must outlive the
// arrays.
autodiff::Array apply_linear(Backend& backend, const Linear& linear, const LinearTraining& training,
                             const Dropout& dropout, const autodiff::Array& x,
                             Elements elements = Elements::computed);

// dx = dy * w, of the matrices of `linear`.     dy [rows, out_features], dx [rows, in_features]
void linear_input_gradient(Backend& backend, const Linear& linear, const Tensor& dy,
                           const Tensor& dx);

// The gradient of a linear's own weights, which then are one plain matrix; nothing where they
// aren't trained.
std::optional<WeightGradient> own_weight_gradient(const Linear& linear,
                                                  const LinearTraining& training,
                                                  const autodiff::Array& x);

// How products with plain weights round their operands.
OperandRounding rounding_of(const PackedMatrix& weights);

}  // namespace paceline
