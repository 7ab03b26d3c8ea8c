// The elements of a row that a thread has, in registers. All are loaded before the first is used,
// so that a row costs one wait for memory instead of one for each element.
#pragma once

#include "kernels/cuda/code/block_reduce.h"

namespace paceline::cuda {

// Every kRowThreads-th element from `first` + thread on; elements behind the row's end are 0.
template <int kCount>
struct RowElements {
  static constexpr int64_t kSpan = int64_t{kCount} * kRowThreads;  // of all threads
  float of[kCount];

  // Calls body(k, i) for the thread's elements i of the row.
  template <class Body>
  PL_DEVICE static void for_each(int64_t first, int64_t width, Body&& body) {
    const int64_t begin = first + thread_index();
    const auto left = static_cast<int32_t>(width - begin);
    PL_UNROLL
    for (int k = 0; k < kCount; ++k) {
      if (k * static_cast<int32_t>(kRowThreads) < left) body(k, begin + k * kRowThreads);
    }
  }

  PL_DEVICE void load(const float* row, int64_t first, int64_t width) {
    const int64_t begin = first + thread_index();
    const auto left = static_cast<int32_t>(width - begin);
    PL_UNROLL
    for (int k = 0; k < kCount; ++k) {
      of[k] = k * static_cast<int32_t>(kRowThreads) < left ? row[begin + k * kRowThreads] : 0.0f;
    }
  }
};

// The elements of a row that norms keep: rows of up to 4,096 are read once.
using NormElements = RowElements<16>;

}  // namespace paceline::cuda
