// Operations that make one number of a row, a block for each row.
#pragma once

#include "kernels/cuda/code/block_reduce.h"
#include "kernels/cuda/code/math.h"
#include "kernels/cuda/code/rows.h"

namespace paceline::cuda {

PL_DEVICE bool is_finite(float x) { return (bits_of_float(x) & 0x7F800000u) != 0x7F800000u; }

struct FiniteRows {
  static constexpr std::string_view kName = "finite_rows";
  static constexpr uint32_t kThreads = kRowThreads;
  struct Params {
    ConstRows x;
    int64_t width = 0;
    uint8_t* out = nullptr;  // 1 for a finite row, else 0
  };
  using Shared = WarpPartials;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const float* const x = p.x.row(block_index().x);
    float spoilt = 0.0f;
    for (int64_t i = thread_index(); i < p.width; i += kRowThreads) {
      if (!is_finite(x[i])) spoilt = 1.0f;
    }
    spoilt = reduce_block<Maximum>(spoilt, shared);
    if (thread_index() == 0) p.out[block_index().x] = spoilt == 0.0f ? 1 : 0;
  }
};

// The largest element, or NaN where there is one; every thread gets it. All kRowThreads must call
// it.
PL_DEVICE float row_maximum(const float* x, int64_t width, WarpPartials& shared) {
  float top = -kInfinity;
  for (int64_t i = thread_index(); i < width; i += kRowThreads) top = Maximum::combine(top, x[i]);
  return reduce_block<Maximum>(top, shared);
}

// log(sum(exp(x))): exponentials less the row's maximum, summed in float32, the logarithm in
// double. Every thread gets it; all kRowThreads must call it.
PL_DEVICE float log_sum_exp_below(float top, const float* x, int64_t width, WarpPartials& shared) {
  // A row of -infinity alone must give exp(-infinity) = 0, not exp(NaN).
  const float shift = top == -kInfinity ? 0.0f : top;
  float sum = 0.0f;
  for (int64_t i = thread_index(); i < width; i += kRowThreads) {
    sum = sum + exponential(x[i] - shift);
  }
  sum = reduce_block<Sum>(sum, shared);
  return static_cast<float>(logarithm(static_cast<double>(sum)) + static_cast<double>(shift));
}

struct LogSumExp {
  static constexpr std::string_view kName = "log_sum_exp";
  static constexpr uint32_t kThreads = kRowThreads;
  struct Params {
    ConstRows x;
    int64_t width = 0;
    float* out = nullptr;
  };
  using Shared = WarpPartials;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const float* const x = p.x.row(block_index().x);
    const float top = row_maximum(x, p.width, shared);
    const float result = log_sum_exp_below(top, x, p.width, shared);
    if (thread_index() == 0) p.out[block_index().x] = result;
  }
};

}  // namespace paceline::cuda
