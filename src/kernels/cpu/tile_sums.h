// Writes the sums of a tile of a product to its outputs.
#pragma once

#include "kernels/cpu/vec.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

// Where the sums of some rows and vectors of columns go.
struct TileOutputs {
  float* out;  // the tile's first row and column
  int64_t out_stride;
  int64_t num_columns;  // of the matrix, from the tile's first on
  const float* bias;    // at the tile's first column, in the last segment; or nullptr
  bool adds;            // to the outputs instead of replacing them
};

template <int kRows, int kVectors>
PL_INLINE void store_sums(const TileOutputs& to, const Vec (&sums)[kRows][kVectors]) {
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) {
    const int64_t column = v * kLanes;
    const int64_t count = min_of(to.num_columns - column, kLanes);
    if (count <= 0) return;
    const Vec bias = to.bias == nullptr ? Vec{} : load_upto(to.bias + column, count);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      float* const out = to.out + r * to.out_stride + column;
      Vec value = sums[r][v];
      if (to.adds) value = load_upto(out, count) + value;
      if (to.bias != nullptr) value = value + bias;
      store_upto(out, value, count);
    }
  }
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
