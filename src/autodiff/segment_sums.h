// The order of every sum of this module: segments of kSumSegment terms at absolute positions.
//
// A segment is summed from zero in order; the sums of segments are added in ascending order to a
// total that begins at zero. Gradients of weights are sums over rows (tokens) in this order. A
// training step that computes them in micro-batches gets the bits of the whole batch, if each
// micro-batch but the last has a multiple of kSumSegment rows and adds the sums of its segments to
// the totals of those before it, one by one: add_row_sums and add_product do, with `totals` left
// as the micro-batch before wrote them. Adding finished gradients of micro-batches doesn't.
#pragma once

#include <algorithm>
#include <cstdint>

#include "autodiff/array.h"

namespace paceline::autodiff {

constexpr int64_t kSumSegment = 64;

// The sum of term(0), ..., term(count - 1).
template <class Term>
float sum_terms(int64_t count, Term term) {
  constexpr int64_t kTogether = 8;  // segments that are summed side by side
  float total = 0.0f;
  int64_t begin = 0;
  for (; begin + kTogether * kSumSegment <= count; begin += kTogether * kSumSegment) {
    float sums[kTogether] = {};
    for (int64_t i = 0; i < kSumSegment; ++i) {
      for (int64_t s = 0; s < kTogether; ++s) sums[s] += term(begin + s * kSumSegment + i);
    }
    for (const float sum : sums) total += sum;
  }
  for (; begin < count; begin += kSumSegment) {
    float sum = 0.0f;
    const int64_t end = std::min(count, begin + kSumSegment);
    for (int64_t i = begin; i < end; ++i) sum += term(i);
    total += sum;
  }
  return total;
}

// Adds the sum over rows to `totals` [width].  rows [num_rows, width], contiguous
void add_row_sums(const Context& context, const float* rows, int64_t num_rows, int64_t width,
                  float* totals);

// totals [m, n] += a [m, k] b [k, n], summing over k.
// a and b: any strides and float dtype, computed in float32; totals: contiguous float32
void add_product(const Context& context, const Tensor& a, const Tensor& b, const Tensor& totals);

}  // namespace paceline::autodiff
