// RMS norm and layer norm: a block for each row, or for each head of a row.
#pragma once

#include "kernels/cuda/code/block_reduce.h"
#include "kernels/cuda/code/rows.h"

namespace paceline::cuda {

struct NormParams {
  Heads x;
  Heads out;  // may be x
  const float* weight = nullptr;
  const float* bias = nullptr;  // of layer norms; may be null
  int64_t width = 0;
  float eps = 0.0f;
};

// The sum of term(i) over the elements of a row: each thread adds its own in ascending order.
template <class Term>
PL_DEVICE float sum_over_row(int64_t width, WarpPartials& partials, Term&& term) {
  float sum = 0.0f;
  for (int64_t i = thread_index(); i < width; i += kRowThreads) sum = sum + term(i);
  return reduce_block<Sum>(sum, partials);
}

// The same bits by one warp; every lane gets the sum.
template <class Term>
PL_DEVICE float sum_by_warp(int64_t width, Term&& term) {
  float total = 0.0f;
  for (uint32_t warp = 0; warp < kRowThreads / kWarpLanes; ++warp) {
    float sum = 0.0f;
    for (int64_t i = warp * kWarpLanes + lane_index(); i < width; i += kRowThreads) {
      sum = sum + term(i);
    }
    sum = reduce_warp<Sum>(sum);
    total = warp == 0 ? sum : total + sum;
    if ((warp + 1) * kWarpLanes >= width) break;
  }
  return total;
}

PL_DEVICE float inverse_root(float mean_square, float eps) {
  return 1.0f / square_root(mean_square + eps);
}

struct RmsNorm {
  static constexpr std::string_view kName = "rms_norm";
  static constexpr uint32_t kThreads = kRowThreads;
  using Params = NormParams;
  using Shared = WarpPartials;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const float* const x = p.x.head(block_index().x);
    float* const out = p.out.head(block_index().x);
    const float squares = sum_over_row(p.width, shared, [x](int64_t i) { return x[i] * x[i]; });
    const float inverse = inverse_root(squares / static_cast<float>(p.width), p.eps);
    for (int64_t i = thread_index(); i < p.width; i += kRowThreads) {
      out[i] = x[i] * inverse * p.weight[i];
    }
  }
};

struct LayerNorm {
  static constexpr std::string_view kName = "layer_norm";
  static constexpr uint32_t kThreads = kRowThreads;
  using Params = NormParams;
  using Shared = WarpPartials;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const float* const x = p.x.head(block_index().x);
    float* const out = p.out.head(block_index().x);
    const auto count = static_cast<float>(p.width);
    const float mean = sum_over_row(p.width, shared, [x](int64_t i) { return x[i]; }) / count;
    const float squares = sum_over_row(
        p.width, shared, [x, mean](int64_t i) { return (x[i] - mean) * (x[i] - mean); });
    const float inverse = inverse_root(squares / count, p.eps);
    for (int64_t i = thread_index(); i < p.width; i += kRowThreads) {
      const float normed = (x[i] - mean) * inverse * p.weight[i];
      out[i] = p.bias != nullptr ? normed + p.bias[i] : normed;
    }
  }
};

}  // namespace paceline::cuda
