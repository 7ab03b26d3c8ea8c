// Multiplies blocks of rows in tile registers, total after total of groups that share a factor.
// Included by isa_group_tiles.cc alone.
#pragma once

#include "kernels/cpu/plane_panel.h"
#include "kernels/cpu/tile_block.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

// A block's rows are cut in two: each tile of weights, from the second-level cache, is multiplied
// by two tiles of inputs.
constexpr int kPlaneRows = 2 * static_cast<int>(kTileRows);
// Steps of one tile of inputs per total. Each step also accumulates the previous total for
// kStepRows rows.
constexpr int kPlaneSteps = static_cast<int>(kMostSharedInputs / kRowBytes);
constexpr int kStepRows = kPlaneRows / kPlaneSteps;

// Rows in the first half of the registers.
PL_INLINE int64_t upper_rows(int64_t num_rows) { return (num_rows + 1) / 2; }

// Where the numbers and outputs of each row in the registers begin. Missing rows have the last
// row's numbers and no outputs.
struct PlaneRows {
  const char* begins[kPlaneRows];
  float* outs[kPlaneRows];

  explicit PlaneRows(const TileBlock& block) {
    const int64_t upper = upper_rows(block.num_rows);
    for (int64_t i = 0; i < kPlaneRows; ++i) {
      const bool is_lower = i >= kTileRows;
      const int64_t row = is_lower ? upper + i - kTileRows : i;
      const int64_t last = is_lower ? block.num_rows - 1 : upper - 1;
      begins[i] = block.scales + min_of(row, last) * block.input_stride;
      outs[i] = row <= last ? block.out + row * block.out_stride : nullptr;
    }
  }
  template <class T>
  T number(int row, int64_t at) const {
    return load_one<T>(begins[row] + at);
  }
};

// The products of one total: low bytes of the upper rows, of the lower ones, then high bytes. Zero
// in missing rows.
struct PlaneProducts {
  alignas(64) char tiles[4][kTileElements * 4] = {};

  void store() {
    store_tile<0>(tiles[0], kRowBytes);
    store_tile<1>(tiles[1], kRowBytes);
    store_tile<2>(tiles[2], kRowBytes);
    store_tile<3>(tiles[3], kRowBytes);
  }
  Ints row(int i) const {
    const int64_t at = i % kTileRows * kRowBytes;
    const auto low = (Ints)load_bits(tiles[i / kTileRows] + at);
    const auto high = (Ints)load_bits(tiles[2 + i / kTileRows] + at);
    return (high << 8) + low;
  }
};

// Tiles 0 to 3 += a step's inputs times both planes of weights.
PL_INLINE void multiply_planes(const char* upper, const char* lower, int64_t stride,
                               const char* weights) {
  constexpr int kUpper = 4, kLower = 5, kLow = 6, kHigh = 7;
  load_tile<kLow>(weights, kRowBytes);
  load_tile<kUpper>(upper, stride);
  multiply_tiles<false, 0, kUpper, kLow>();
  load_tile<kLower>(lower, stride);
  multiply_tiles<false, 1, kLower, kLow>();
  load_tile<kHigh>(weights + kPlaneTileBytes, kRowBytes);
  multiply_tiles<false, 2, kUpper, kHigh>();
  multiply_tiles<false, 3, kLower, kHigh>();
}

// Multiplies two neighbouring groups' numbers of 16 bits and adds both products to `sum`.
PL_INLINE Ints add_pairs(Ints sum, const uint32_t* pairs, uint32_t inputs) {
  return (Ints)_mm512_dpwssd_epi32((__m512i)sum, (__m512i)load_bits(pairs),
                                   (__m512i)splat_bits(inputs));
}

struct PlaneTotal {
  Vec scale;
  Vec offset;
  const uint32_t* pairs = nullptr;
  int64_t num_groups = 0;
  int64_t scale_at = 0;  // bytes from where a row's numbers begin
  int64_t sums_at = 0;
};

// Accumulates rows kFirst to kFirst + kStepRows - 1 like add_integer_totals() of group_sums.h.
template <bool kOffsets, int kFirst>
PL_INLINE void add_plane_rows(const PlaneRows& rows, const PlaneProducts& products,
                              const PlaneTotal& total, float (*sums)[kTileColumns]) {
#pragma GCC unroll 8
  for (int r = kFirst; r < kFirst + kStepRows; ++r) {
    Vec value = __builtin_convertvector(products.row(r), Vec) * total.scale;
    if constexpr (kOffsets) {
      Ints offsets = {};
      for (int64_t g = 0; g < total.num_groups; g += 2) {
        const auto inputs = rows.number<uint32_t>(r, total.sums_at + g * int64_t{sizeof(int16_t)});
        offsets = add_pairs(offsets, total.pairs + g / 2 * kTileColumns, inputs);
      }
      value = fma(__builtin_convertvector(offsets, Vec), total.offset, value);
    }
    store(sums[r], fma(value, splat(rows.number<float>(r, total.scale_at)), load(sums[r])));
  }
}

// Adds a half's sums to the outputs and clears them.
inline void store_plane_half(const TileBlock& block, const PlaneRows& rows, int64_t half,
                             const float* column_factors, float (*sums)[kTileColumns]) {
  const HalfOutputs outputs(block, half, column_factors);
  for (int r = 0; r < kPlaneRows; ++r) {
    if (rows.outs[r] != nullptr) outputs.store_row(rows.outs[r], load(sums[r]));
    store(sums[r], Vec{});
  }
}

template <bool kOffsets>
void multiply_plane_block(const TileBlock& block) {
  PlaneProducts products;
  alignas(64) float sums[kPlaneRows][kTileColumns] = {};
  const PlaneRows rows(block);
  const int64_t groups = kMostSharedInputs / block.group_size;
  const int64_t totals = block.num_groups / groups, steps = block.num_halves * totals;
  const int64_t stride = block.input_stride, lower = upper_rows(block.num_rows) * stride;
  TilePlace multiplied, added;
  for (int64_t i = 0; i <= steps; ++i) {
    const bool multiplies = i<steps, adds = i> 0;
    const int64_t k = multiplied.part * kMostSharedInputs;
    const char* inputs = block.inputs + k;
    const char* weights = block.halves + multiplied.half * kPlanePanelBytes + k * kTileColumns * 2;
    const PlanePanel half = plane_panel_at(block.halves + added.half * kPlanePanelBytes, totals);
    PlaneTotal total = {.num_groups = groups};
    if (adds) {
      const int64_t first = added.part * groups;
      total.scale = load(half.scales + added.part * kTileColumns);
      if constexpr (kOffsets) total.offset = load(half.offsets + added.part * kTileColumns);
      total.pairs = half.offset_pairs + first / 2 * kTileColumns;
      total.scale_at = first * int64_t{sizeof(float)};
      total.sums_at = block.sums + first * int64_t{sizeof(int16_t)};
    }
    if (multiplies) {
      zero_tile<0>();
      zero_tile<1>();
      zero_tile<2>();
      zero_tile<3>();
    }
    for_each_four<kPlaneSteps>([&]<int kStep>() __attribute__((always_inline)) {
      if (multiplies) {
        multiply_planes(inputs, inputs + lower, stride, weights);
        inputs += kRowBytes;
        weights += 2 * kPlaneTileBytes;
      }
      if (adds) add_plane_rows<kOffsets, kStep * kStepRows>(rows, products, total, sums);
    });
    if (adds) {
      if (added.part + 1 == totals) store_plane_half(block, rows, added.half, half.factors, sums);
      added.advance(totals);
    }
    if (multiplies) {
      products.store();
      multiplied.advance(totals);
    }
  }
}

inline void configure_plane_tiles(int64_t num_rows) {
  const int64_t upper = upper_rows(num_rows);
  TileConfig config;
  for (const int tile : {0, 2, 4}) config.set(tile, upper);
  for (const int tile : {1, 3, 5}) config.set(tile, num_rows - upper);
  config.set(6, kTileRows);
  config.set(7, kTileRows);
  config.use();
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
