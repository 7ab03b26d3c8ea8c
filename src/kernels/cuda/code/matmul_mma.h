// Products with bfloat16 weights by mma.sync m16n8k16: 16 columns of the matrix times 8 rows of x.
// A warp walks all inputs in segments of kSegmentLength, each from zero in steps of 16, and adds
// the segments' sums in ascending order: an element's bits depend on its row and column alone.
#pragma once

#include "kernels/cuda/code/block_reduce.h"
#include "kernels/cuda/code/elementwise.h"
#include "kernels/cuda/code/product_params.h"

namespace paceline::cuda {

constexpr int64_t kMmaColumns = 16;
constexpr int64_t kMmaRows = 8;
constexpr uint32_t kMmaDepth = 16;

// Inputs k and k + 1 of a row, rounded to bfloat16; zero from `end` on.
PL_DEVICE uint32_t input_pair(const float* row, uint32_t k, uint32_t end) {
  return pack_bf16(k < end ? row[k] : 0.0f, k + 1 < end ? row[k + 1] : 0.0f);
}

// The weights of one step as the instruction's operand A: lane l has columns l / 4 and l / 4 + 8 of
// the tile, inputs 2 (l % 4) and the next, and those 8 further.
template <class Panels>
PL_DEVICE void load_weights(const Panels& weights, uint32_t first_pair, int64_t column,
                            uint32_t (&a)[4]) {
  const uint32_t num_pairs = (weights.k + 1) / 2;
  const uint32_t near = first_pair + thread_index() % 4, far = near + 4;
  a[0] = near < num_pairs ? bf16_pair(weights, near, column) : 0u;
  a[1] = near < num_pairs ? bf16_pair(weights, near, column + 8) : 0u;
  a[2] = far < num_pairs ? bf16_pair(weights, far, column) : 0u;
  a[3] = far < num_pairs ? bf16_pair(weights, far, column + 8) : 0u;
}

// Inputs [begin, end) times the columns of the tile, from zero: lane l gets columns l / 4 and
// l / 4 + 8 of rows 2 (l % 4) and the next.
template <class Panels>
PL_DEVICE void multiply_segment(const Panels& weights, int64_t first_column, const float* row,
                                uint32_t begin, uint32_t end, float (&sums)[4]) {
  const int64_t column = first_column + thread_index() / 4;
  for (float& sum : sums) sum = 0.0f;
  for (uint32_t k = begin; k < end; k += kMmaDepth) {
    uint32_t a[4];
    load_weights(weights, k / 2, column, a);
    const uint32_t input = k + 2 * (thread_index() % 4);
    const uint32_t b[2] = {row == nullptr ? 0u : input_pair(row, input, end),
                           row == nullptr ? 0u : input_pair(row, input + 8, end)};
    mma_bf16(sums, a, b);
  }
}

// Panels have 32 columns, so a tile stands in one of them. Columns beyond the matrix are zero.
template <class Panels>
PL_DEVICE void store_tile(const ProductParams<Panels>& p, int64_t first_column, int64_t first_row,
                          const float (&totals)[4]) {
  for (int i = 0; i < 4; ++i) {
    const int64_t column = first_column + thread_index() / 4 + 8 * (i / 2);
    const int64_t row = first_row + 2 * (thread_index() % 4) + i % 2;
    const int64_t place = column - p.first_column;
    if (row >= p.num_rows || place < 0 || place >= p.num_columns) continue;
    p.out.row(row)[place] = p.bias != nullptr ? totals[i] + p.bias[column] : totals[i];
  }
}

// One warp: tile block_index().x of columns, from the one that holds first_column on, and tile
// block_index().y of rows.
template <class Panels>
PL_DEVICE void multiply_tile(const ProductParams<Panels>& p) {
  const int64_t first_column =
      (p.first_column / kMmaColumns + int64_t{block_index().x}) * kMmaColumns;
  for (int64_t tile = block_index().y; tile * kMmaRows < p.num_rows; tile += grid_size().y) {
    const int64_t row = tile * kMmaRows + thread_index() / 4;
    const float* const x = row < p.num_rows ? p.x.row(row) : nullptr;
    float totals[4] = {};
    for (uint32_t begin = 0; begin < p.weights.k; begin += kSegmentLength) {
      const uint32_t left = p.weights.k - begin;
      const uint32_t length = left < kSegmentLength ? left : uint32_t{kSegmentLength};
      float sums[4];
      multiply_segment(p.weights, first_column, x, begin, begin + length, sums);
      for (int i = 0; i < 4; ++i) totals[i] = totals[i] + sums[i];
    }
    store_tile(p, first_column, tile * kMmaRows, totals);
  }
}

struct MatmulBf16 {
  static constexpr std::string_view kName = "matmul_bf16";
  static constexpr uint32_t kThreads = kWarpLanes;
  using Params = ProductParams<PlainPanels>;
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) { multiply_tile(p); }
};

// Quantised weights, rounded to bfloat16.
struct MatmulGroups {
  static constexpr std::string_view kName = "matmul_groups";
  static constexpr uint32_t kThreads = kWarpLanes;
  using Params = ProductParams<GroupedPanels>;
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) { multiply_tile(p); }
};

}  // namespace paceline::cuda
