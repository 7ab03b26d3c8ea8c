// A block of rows times widened halves of panels in tile registers: arguments and outputs of its
// products.
#pragma once

#include "kernels/cpu/tile_registers.h"
#include "kernels/packed_layout.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

// Some rows times neighbouring halves of panels, over one segment.
struct TileBlock {
  const char* inputs = nullptr;  // the first row's codes at the segment's start
  const char* scales = nullptr;  // of the first row and the segment's first group
  int64_t sums = 0;              // bytes from there to the sums of its inputs
  int64_t input_stride = 0;
  int64_t num_rows = 0;
  char* halves = nullptr;  // widened
  int64_t num_halves = 0;
  int64_t num_groups = 0;
  int64_t group_size = 0;
  int64_t groups_per_input = 1;  // a power of two
  float* out = nullptr;
  int64_t out_stride = 0;
  int64_t num_columns = 0;      // of the matrix, from the first half's first on
  const float* bias = nullptr;  // of the columns, in the last segment; or nullptr
  bool is_first_segment = false;
};

// Makes outputs of the sums of a half.
struct HalfOutputs {
  Vec factors;
  Vec bias = {};
  int64_t column = 0;
  int64_t count = 0;  // columns that the matrix has
  bool is_first = false;
  bool has_bias = false;

  HalfOutputs(const TileBlock& block, int64_t half, const float* column_factors)
      : factors(load(column_factors)),
        column(half * kTileColumns),
        count(min_of(block.num_columns - column, kTileColumns)),
        is_first(block.is_first_segment),
        has_bias(block.bias != nullptr) {
    if (has_bias) bias = load_upto(block.bias + column, count);
  }
  // `row` is the output's at the block's first column.
  void store_row(float* row, Vec sum) const {
    Vec value = sum * factors;
    if (!is_first) value = load_upto(row + column, count) + value;
    if (has_bias) value = value + bias;
    store_upto(row + column, value, count);
  }
};

// The position of a product's step in a block's halves.
struct TilePlace {
  int64_t half = 0;
  int64_t part = 0;

  // True when a half has ended.
  bool advance(int64_t num_parts) {
    if (++part < num_parts) return false;
    part = 0;
    ++half;
    return true;
  }
};

}  // namespace paceline::PACELINE_ISA_NAMESPACE
