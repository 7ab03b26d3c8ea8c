// Gradients of weights: dw += dy^T * x, a block for each tile of 32 by 32 elements. A thread sums
// its elements over rows in ascending order.
#pragma once

#include "kernels/cuda/code/element_types.h"
#include "kernels/cuda/code/rows.h"

namespace paceline::cuda {

// The rows of a segment of a sum over rows (gradients.h).
constexpr uint32_t kSegmentRows = 256;

struct WeightGradientShared {
  static constexpr uint32_t kTile = 32;
  static constexpr uint32_t kRows = 16;  // in shared memory at once

  float dy[kRows][kTile];
  float x[kRows][kTile];
};

struct MatmulWeightGradient {
  static constexpr std::string_view kName = "weight_gradient";
  static constexpr uint32_t kThreads = 256;
  struct Params {
    ConstRows dy;
    ConstRows x;
    int64_t num_rows = 0;
    int64_t n = 0;        // columns of dy
    int64_t k = 0;        // columns of x
    uint32_t rounds = 0;  // 1: operands to bfloat16, and sums go on from the gradient that is there
    Rows dw;
  };
  using Shared = WeightGradientShared;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const int64_t first_n = int64_t{block_index().x} * Shared::kTile;
    const int64_t first_k = int64_t{block_index().y} * Shared::kTile;
    float total[kEach][kEach];
    for_each_element(p, first_n, first_k,
                     [&](uint32_t i, uint32_t j, float& dw) { total[i][j] = dw; });
    for (int64_t begin = 0; begin < p.num_rows; begin += kSegmentRows) {
      const int64_t left = p.num_rows - begin;
      const int64_t end = begin + (left < kSegmentRows ? left : int64_t{kSegmentRows});
      add_segment(p, shared, {begin, end, first_n, first_k}, total);
    }
    for_each_element(p, first_n, first_k,
                     [&](uint32_t i, uint32_t j, float& dw) { dw = total[i][j]; });
  }

 private:
  static constexpr uint32_t kEach = 2;  // elements of a thread along n and k, 16 apart
  static constexpr uint32_t kSide = Shared::kTile / kEach;

  struct Part {
    int64_t first_row, end_row;
    int64_t first_n, first_k;
  };

  // Calls body(i, j, dw) for the thread's elements of the gradient.
  template <class Body>
  PL_DEVICE static void for_each_element(const Params& p, int64_t first_n, int64_t first_k,
                                         Body&& body) {
    PL_UNROLL
    for (uint32_t i = 0; i < kEach; ++i) {
      const int64_t n = first_n + thread_index() / kSide + i * kSide;
      PL_UNROLL
      for (uint32_t j = 0; j < kEach; ++j) {
        const int64_t k = first_k + thread_index() % kSide + j * kSide;
        if (n < p.n && k < p.k) body(i, j, p.dw.row(n)[k]);
      }
    }
  }

  PL_DEVICE static float operand(const Params& p, float value) {
    return p.rounds != 0 ? to_float(to_bf16(value)) : value;
  }

  // Rows behind the segment's last are zeros.
  PL_DEVICE static void load(const Params& p, Shared& shared, const Part& part, int64_t row) {
    for (uint32_t i = thread_index(); i < Shared::kRows * Shared::kTile; i += kThreads) {
      const uint32_t in_tile = i / Shared::kTile, column = i % Shared::kTile;
      const bool is_there = row + in_tile < part.end_row;
      const int64_t n = part.first_n + column, k = part.first_k + column;
      const bool has_dy = is_there && n < p.n, has_x = is_there && k < p.k;
      shared.dy[in_tile][column] = has_dy ? operand(p, p.dy.row(row + in_tile)[n]) : 0.0f;
      shared.x[in_tile][column] = has_x ? operand(p, p.x.row(row + in_tile)[k]) : 0.0f;
    }
  }

  PL_DEVICE static void add_segment(const Params& p, Shared& shared, const Part& part,
                                    float (&total)[kEach][kEach]) {
    float sum[kEach][kEach];
    PL_UNROLL
    for (uint32_t i = 0; i < kEach * kEach; ++i) {
      sum[i / kEach][i % kEach] = p.rounds != 0 ? total[i / kEach][i % kEach] : 0.0f;
    }
    for (int64_t row = part.first_row; row < part.end_row; row += Shared::kRows) {
      sync_threads();  // the rows before have been read
      load(p, shared, part, row);
      sync_threads();
      const int64_t left = part.end_row - row;
      const uint32_t rows =
          left < Shared::kRows ? static_cast<uint32_t>(left) : uint32_t{Shared::kRows};
      for (uint32_t r = 0; r < rows; ++r) {
        PL_UNROLL
        for (uint32_t i = 0; i < kEach * kEach; ++i) {
          sum[i / kEach][i % kEach] = fused_multiply_add(
              shared.dy[r][thread_index() / kSide + i / kEach * kSide],
              shared.x[r][thread_index() % kSide + i % kEach * kSide], sum[i / kEach][i % kEach]);
        }
      }
    }
    PL_UNROLL
    for (uint32_t i = 0; i < kEach * kEach; ++i) {
      float& all = total[i / kEach][i % kEach];
      all = p.rounds != 0 ? sum[i / kEach][i % kEach] : all + sum[i / kEach][i % kEach];
    }
  }
};

}  // namespace paceline::cuda
