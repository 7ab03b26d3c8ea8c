// Parameters of products: rows of x times some columns of a matrix.
#pragma once

#include "kernels/cuda/code/packed_panels.h"
#include "kernels/cuda/code/rows.h"

namespace paceline::cuda {

struct ProductParams {
  PlainPanels weights;
  ConstRows x;
  int64_t num_rows = 0;
  const float* bias = nullptr;  // of all columns of the matrix
  int64_t first_column = 0;     // of the matrix, that of out[0]
  int64_t num_columns = 0;
  Rows out;
};

}  // namespace paceline::cuda
