// Dropout of rows: a function of where an element stands (DroppedElements in gradients.h).
#pragma once

#include "base/random.h"
#include "kernels/cuda/code/elementwise.h"

namespace paceline::cuda {

struct DropElements {
  static constexpr std::string_view kName = "drop_elements";
  static constexpr uint32_t kThreads = kElementThreads;
  struct Params {
    ConstRows x;
    Rows out;  // may be x
    int64_t width = 0;
    uint64_t threshold = 0;
    float factor = 1.0f;
    uint64_t seed = 0;
    uint64_t stream = 0;
    int64_t first_row = 0;
    const int32_t* rows = nullptr;  // null: those of x
  };
  using Shared = NoShared;
  static constexpr int64_t kDraws = 4;  // of a counter

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const int64_t row = block_index().x, counters = (p.width + kDraws - 1) / kDraws;
    const int64_t drawn_row = p.first_row + (p.rows != nullptr ? int64_t{p.rows[row]} : row);
    const float* const x = p.x.row(row);
    float* const out = p.out.row(row);
    for_each_column(counters, [&](int64_t i) {
      const auto draws =
          philox4x32(p.seed, static_cast<uint64_t>(drawn_row * counters + i), p.stream);
      PL_UNROLL
      for (int64_t k = 0; k < kDraws; ++k) {
        const int64_t column = i * kDraws + k;
        if (column >= p.width) continue;
        const bool is_dropped = draws[static_cast<size_t>(k)] < p.threshold;
        out[column] = is_dropped ? 0.0f : x[column] * p.factor;
      }
    });
  }
};

}  // namespace paceline::cuda
