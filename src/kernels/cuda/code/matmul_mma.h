// Products of up to 8 rows with bfloat16 weights where inputs don't stand as matmul_few.h copies
// them: a warp has 16 columns, and loads operands element by element.
// All inputs are walked in segments of kSegmentLength, each from zero in steps of 16, and the
// segments' sums are added in ascending order: an element's bits depend on its row and column
// alone.
#pragma once

#include "kernels/cuda/code/block_reduce.h"
#include "kernels/cuda/code/elementwise.h"
#include "kernels/cuda/code/panel_products.h"
#include "kernels/cuda/code/product_params.h"

namespace paceline::cuda {

constexpr int64_t kMmaColumns = 16;
constexpr int64_t kMmaRows = 8;
// The steps whose operands are loaded before they are multiplied, so that loads overlap.
constexpr uint32_t kStepsAtOnce = 4;

// A warp's products: the columns of one tile times those of 8 rows. Lane l has columns l / 4 and
// l / 4 + 8 of rows 2 (l % 4) and the next.
struct TileSums {
  float of[4];

  PL_DEVICE void clear() {
    for (float& sum : of) sum = 0.0f;
  }
  PL_DEVICE void add(const TileSums& other) {
    for (int i = 0; i < 4; ++i) of[i] = of[i] + other.of[i];
  }
};

// What a warp multiplies. The inputs of a step are in the order of panel_products.h.
struct MmaTile {
  const ProductParams& p;
  int64_t first_column;  // of the matrix
  int64_t first_row;

  // The weights of a step as the instruction's operand a: lane l has columns l / 4 and l / 4 + 8 of
  // the tile, inputs 4 (l % 4) and the next three.
  PL_DEVICE void load_weights(uint32_t k, uint32_t end, uint32_t (&a)[4]) const {
    const int64_t column = first_column + lane_index() / 4;
    const uint32_t near = k + 4 * (lane_index() % 4), far = near + 2;
    a[0] = near < end ? bf16_pair(p.weights, near / 2, column) : 0u;
    a[1] = near < end ? bf16_pair(p.weights, near / 2, column + 8) : 0u;
    a[2] = far < end ? bf16_pair(p.weights, far / 2, column) : 0u;
    a[3] = far < end ? bf16_pair(p.weights, far / 2, column + 8) : 0u;
  }

  // Inputs k and k + 1 of a row, rounded to bfloat16; zero from `end` on.
  PL_DEVICE static uint32_t input_pair(const float* row, uint32_t k, uint32_t end) {
    return pack_bf16(k < end ? row[k] : 0.0f, k + 1 < end ? row[k + 1] : 0.0f);
  }

  // The inputs of a step as operand b: lane l has inputs 4 (l % 4) and the next three of row l / 4.
  PL_DEVICE void load_inputs(uint32_t k, uint32_t end, uint32_t (&b)[2]) const {
    const int64_t index = first_row + lane_index() / 4;
    const bool is_present = index < p.num_rows;
    const float* const row = p.x.row(is_present ? index : first_row);
    const uint32_t near = k + 4 * (lane_index() % 4);
    b[0] = is_present ? input_pair(row, near, end) : 0u;
    b[1] = is_present ? input_pair(row, near + 2, end) : 0u;
  }

  // Inputs [begin, end), from zero.
  PL_DEVICE void multiply_inputs(uint32_t begin, uint32_t end, TileSums& sums) const {
    constexpr uint32_t kSteps = kStepsAtOnce;
    sums.clear();
    for (uint32_t first = begin; first < end; first += kSteps * kStepInputs) {
      uint32_t a[kSteps][4], b[kSteps][2];
      PL_UNROLL
      for (uint32_t step = 0; step < kSteps; ++step) {
        load_weights(first + step * kStepInputs, end, a[step]);
        load_inputs(first + step * kStepInputs, end, b[step]);
      }
      PL_UNROLL
      for (uint32_t step = 0; step < kSteps; ++step) {
        if (first + step * kStepInputs >= end) break;
        mma_bf16(sums.of, a[step], b[step]);
      }
    }
  }

  PL_DEVICE void multiply_segment(int64_t index, TileSums& sums) const {
    const auto begin = static_cast<uint32_t>(index * kSegmentLength);
    const uint32_t left = p.weights.k - begin;
    multiply_inputs(begin, begin + (left < kSegmentLength ? left : uint32_t{kSegmentLength}), sums);
  }

  // Calls body(row, place of the column in out, sum) for this lane's elements.
  template <class Body>
  PL_DEVICE void for_each_element(const TileSums& sums, Body&& body) const {
    for (int i = 0; i < 4; ++i) {
      const int64_t place = first_column - p.first_column + lane_index() / 4 + 8 * (i / 2);
      const int64_t row = first_row + 2 * (lane_index() % 4) + i % 2;
      if (row < p.num_rows && place >= 0 && place < p.num_columns) body(row, place, sums.of[i]);
    }
  }
};

// One warp: tile x of the grid of columns, from the one that holds first_column on. With
// `segment_sums` it computes segment z alone, else all of them. Panels have 32 columns, so a tile
// stands in one of them; those beyond the matrix are zero.
PL_DEVICE void multiply_tile(const ProductParams& p) {
  const int64_t first_column =
      (p.first_column / kMmaColumns + int64_t{block_index().x}) * kMmaColumns;
  const int64_t num_segments = (int64_t{p.weights.k} + kSegmentLength - 1) / kSegmentLength;
  const MmaTile tile{p, first_column, block_index().y * kMmaRows};
  TileSums sums;
  if (p.segment_sums != nullptr) {
    const int64_t segment = block_index().z;
    tile.multiply_segment(segment, sums);
    return tile.for_each_element(sums, [&p, segment](int64_t row, int64_t place, float sum) {
      p.segment_sums[(segment * p.num_rows + row) * p.num_columns + place] = sum;
    });
  }
  TileSums totals;
  totals.clear();
  for (int64_t segment = 0; segment < num_segments; ++segment) {
    tile.multiply_segment(segment, sums);
    totals.add(sums);
  }
  tile.for_each_element(totals, [&p](int64_t row, int64_t place, float total) {
    p.out.row(row)[place] = p.bias != nullptr ? total + p.bias[p.first_column + place] : total;
  });
}

struct MatmulBf16 {
  static constexpr std::string_view kName = "matmul_bf16";
  static constexpr uint32_t kThreads = kWarpLanes;
  using Params = ProductParams;
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) { multiply_tile(p); }
};

// Adds the segments' sums of each element: rows along x of the grid, columns along y.
struct AddSegments {
  static constexpr std::string_view kName = "add_segments";
  static constexpr uint32_t kThreads = kElementThreads;
  struct Params {
    const float* segment_sums = nullptr;  // [segments, rows, width]
    int64_t num_segments = 0;
    int64_t num_rows = 0;
    const float* bias = nullptr;  // of the columns of out; may be null
    Rows out;
    int64_t width = 0;
  };
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const int64_t row = block_index().x;
    float* const out = p.out.row(row);
    for_each_column(p.width, [&p, row, out](int64_t i) {
      float total = 0.0f;
      for (int64_t segment = 0; segment < p.num_segments; ++segment) {
        total = total + p.segment_sums[(segment * p.num_rows + row) * p.width + i];
      }
      out[i] = p.bias != nullptr ? total + p.bias[i] : total;
    });
  }
};

}  // namespace paceline::cuda
