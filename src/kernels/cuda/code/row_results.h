// Operations that make one number of a row, a block for each row.
#pragma once

#include "kernels/cuda/code/math.h"
#include "kernels/cuda/code/row_elements.h"
#include "kernels/cuda/code/rows.h"

namespace paceline::cuda {

// Half as long as what covers the memory's latency, as each thread has two of them in flight.
using ResultElements = RowElements<16>;

// Calls body(elements, first) for a row's spans in ascending order, the next one being loaded.
template <class Body>
PL_DEVICE void for_each_loaded_span(const float* row, int64_t width, Body&& body) {
  ResultElements elements, next;
  next.load(row, 0, width);
  for (int64_t first = 0; first < width; first += ResultElements::kSpan) {
    elements = next;
    next.load(row, first + ResultElements::kSpan, width);
    body(elements, first);
  }
}

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
    float top = 0.0f;  // the largest magnitude, or NaN
    for_each_loaded_span(p.x.row(block_index().x), p.width, [&](const auto& x, int64_t) {
      PL_UNROLL
      for (const float element : x.of) top = Maximum::combine(top, magnitude(element));
    });
    top = reduce_block<Maximum>(top, shared);
    if (thread_index() == 0) p.out[block_index().x] = is_finite(top) ? 1 : 0;
  }
};

// The largest element, or NaN where there is one; every thread gets it. All kRowThreads must call
// it.
PL_DEVICE float row_maximum(const float* x, int64_t width, WarpPartials& shared) {
  float top = -kInfinity;
  for_each_loaded_span(x, width, [&](const ResultElements& elements, int64_t first) {
    ResultElements::for_each(first, width,
                             [&](int k, int64_t) { top = Maximum::combine(top, elements.of[k]); });
  });
  return reduce_block<Maximum>(top, shared);
}

// log(sum(exp(x))): exponentials less the row's maximum, summed in float32, the logarithm in
// double. Every thread gets it; all kRowThreads must call it.
PL_DEVICE float log_sum_exp_below(float top, const float* x, int64_t width, WarpPartials& shared) {
  // A row of -infinity alone must give exp(-infinity) = 0, not exp(NaN).
  const float shift = top == -kInfinity ? 0.0f : top;
  float sum = 0.0f;
  for_each_loaded_span(x, width, [&](const ResultElements& elements, int64_t first) {
    ResultElements shares;
    PL_UNROLL
    for (int k = 0; k < 16; ++k) shares.of[k] = exponential_below_one(elements.of[k] - shift);
    ResultElements::for_each(first, width, [&](int k, int64_t) { sum = sum + shares.of[k]; });
  });
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
