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

// log(sum(exp(x))): exponentials less the row's maximum, summed in float32, the logarithm in
// double.
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
    float top = -kInfinity;
    for (int64_t i = thread_index(); i < p.width; i += kRowThreads) {
      top = Maximum::combine(top, x[i]);
    }
    top = reduce_block<Maximum>(top, shared);
    // A row of -infinity alone must give exp(-infinity) = 0, not exp(NaN).
    const float shift = top == -kInfinity ? 0.0f : top;
    float sum = 0.0f;
    for (int64_t i = thread_index(); i < p.width; i += kRowThreads) {
      sum = sum + exponential(x[i] - shift);
    }
    sum = reduce_block<Sum>(sum, shared);
    if (thread_index() > 0) return;
    p.out[block_index().x] =
        static_cast<float>(logarithm(static_cast<double>(sum)) + static_cast<double>(shift));
  }
};

}  // namespace paceline::cuda
