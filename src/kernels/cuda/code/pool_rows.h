// Combines rows, in double and in ascending order: a thread for each column.
#pragma once

#include "kernels/cuda/code/elementwise.h"

namespace paceline::cuda {

// The values of paceline::RowPooling.
enum class PoolingKind : uint8_t { sum, weighted_sum, max };

struct PoolRows {
  static constexpr std::string_view kName = "pool_rows";
  static constexpr uint32_t kThreads = kElementThreads;
  struct Params {
    ConstRows x;
    int64_t num_rows = 0;
    int64_t width = 0;
    int64_t first_position = 0;
    PoolingKind how = PoolingKind::sum;
    double* pooled = nullptr;
  };
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const int64_t column = int64_t{block_index().x} * kElementThreads + thread_index();
    if (column >= p.width) return;
    double pooled = p.pooled[column];
    for (int64_t r = 0; r < p.num_rows; ++r) {
      const auto element = static_cast<double>(p.x.row(r)[column]);
      if (p.how == PoolingKind::max) {
        pooled = pooled < element ? element : pooled;
        continue;
      }
      const auto position = static_cast<double>(p.first_position + r + 1);
      pooled = pooled + (p.how == PoolingKind::sum ? element : position * element);
    }
    p.pooled[column] = pooled;
  }
};

}  // namespace paceline::cuda
