// Products of the heads of rows, for the gradients of numbers that a head has
// one of.
#pragma once

#include "tensor/tensor.h"

namespace paceline {

// out[r, h] = the sum of x[r, h, i] * y[r, h, i] over ascending i, in double.
//                                       x, y [rows, heads * size], out [rows,
//                                       heads]
void multiply_heads(const Tensor& x, const Tensor& y, const Tensor& out);

}  // namespace paceline
