// Products with float32 and float16 weights: fused multiply-adds in float32, in the segments of the
// other products. A thread computes one element: 32 columns of a panel times 4 rows in a block.
#pragma once

#include "kernels/cuda/code/elementwise.h"
#include "kernels/cuda/code/product_params.h"

namespace paceline::cuda {

constexpr uint32_t kFloatProductRows = 4;

template <class Stored>
PL_DEVICE float dot_in_segments(const PlainPanels& weights, int64_t column, const float* x) {
  float total = 0.0f;
  for (uint32_t begin = 0; begin < weights.k; begin += kSegmentLength) {
    const uint32_t left = weights.k - begin;
    const uint32_t end = begin + (left < kSegmentLength ? left : uint32_t{kSegmentLength});
    float sum = 0.0f;
    for (uint32_t k = begin; k < end; ++k) {
      sum = fused_multiply_add(x[k], plain_element<Stored>(weights, k, column), sum);
    }
    total = total + sum;
  }
  return total;
}

template <class Stored>
struct MatmulFloat {
  static constexpr std::string_view kName =
      TypeNames{.f32 = "matmul_f32", .f16 = "matmul_f16"}.of<Stored>();
  static constexpr uint32_t kThreads = kPanelWidth * kFloatProductRows;
  using Params = ProductParams;
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const int64_t column = (p.first_column / kPanelWidth + int64_t{block_index().x}) * kPanelWidth +
                           thread_index() % kPanelWidth;
    const int64_t place = column - p.first_column;
    if (place < 0 || place >= p.num_columns) return;
    const int64_t step = int64_t{grid_size().y} * kFloatProductRows;
    int64_t row = int64_t{block_index().y} * kFloatProductRows + thread_index() / kPanelWidth;
    for (; row < p.num_rows; row += step) {
      const float total = dot_in_segments<Stored>(p.weights, column, p.x.row(row));
      p.out.row(row)[place] = p.bias != nullptr ? total + p.bias[column] : total;
    }
  }
};

}  // namespace paceline::cuda
