// The Newton-Schulz iteration that makes a matrix nearly orthogonal (Keller Jordan et al., "Muon:
// An optimizer for hidden layers in neural networks", 2024).
#pragma once

#include "base/thread_pool.h"
#include "kernels/backend.h"
#include "tensor/tensor.h"

namespace paceline {

// Five steps X <- a X + (b A + c A^2) X with A = X X^T from X = matrix / its length, with
// a, b, c = 3.4445, -4.7750, 2.0315: singular values come near 1, singular vectors stay. A matrix
// taller than wide is transposed meanwhile. Operands of products are rounded to `dtype` (float32 or
// bfloat16). The bits don't depend on the number of threads.    matrix [n, k] float32, in place
void orthogonalise(Backend& backend, ThreadPool& threads, DType dtype, const Tensor& matrix);

}  // namespace paceline
