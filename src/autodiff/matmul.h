// Products of matrices.
#pragma once

#include "autodiff/array.h"

namespace paceline::autodiff {

// a [..., m, k] times b [..., k, n]; the dimensions in front broadcast. Sums over k in float32 in
// the order of segment_sums.h and rounds once. With a matrix b all rows of a are one dimension, so
// that the gradient of b is one sum over them. Errors: invalid, with both shapes.
Array matmul(const Array& a, const Array& b);

}  // namespace paceline::autodiff
