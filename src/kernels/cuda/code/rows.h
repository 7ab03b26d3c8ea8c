// Rows of tensors as kernels take them: float32, the elements of a row side by side.
#pragma once

#include "kernels/cuda/code/device_code.h"

namespace paceline::cuda {

struct Rows {
  float* first = nullptr;
  int64_t stride = 0;

  PL_DEVICE float* row(int64_t index) const { return first + index * stride; }
};

struct ConstRows {
  const float* first = nullptr;
  int64_t stride = 0;

  PL_DEVICE const float* row(int64_t index) const { return first + index * stride; }
};

// The heads of all rows, one after another: head `index % heads` of row `index / heads`.
struct Heads {
  float* first = nullptr;
  int64_t heads = 1;  // of a row
  int64_t row_stride = 0;
  int64_t head_stride = 0;

  // A number of 32 bits, which is divided in a quarter of the time.
  PL_DEVICE float* head(int64_t index) const {
    const auto at = static_cast<uint32_t>(index), of_row = static_cast<uint32_t>(heads);
    return head(at / of_row, at % of_row);
  }
  PL_DEVICE float* head(int64_t row, int64_t index) const {
    return first + row * row_stride + index * head_stride;
  }
};

}  // namespace paceline::cuda
