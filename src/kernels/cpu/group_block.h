// Multiplies blocks of rows in tile registers, group after group. Included by isa_group_tiles.cc
// alone.
#pragma once

#include "kernels/cpu/half_panel.h"
#include "kernels/cpu/tile_block.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

constexpr int kSumTiles = 4;
// A software pipeline, counted in groups: sums are stored kStoreLag groups after their products are
// issued and used kUseLag groups after, so that neither step waits.
constexpr int kStoreLag = 2;
constexpr int kUseLag = 3;

// Tile kSum = inputs times weights of one group, in kSteps steps.
template <bool kOffsets, int kSum, int kSteps>
PL_INLINE void multiply_group(const char* inputs, int64_t stride, const char* weights) {
  constexpr int kInput = kSumTiles + kSum % 2, kWeight = kSumTiles + 2 + kSum % 2;
  zero_tile<kSum>();
  for_each_four<kSteps>([&]<int kStep>() __attribute__((always_inline)) {
    load_tile<kWeight>(weights + kStep * kRowBytes * kTileColumns, kRowBytes);
    load_tile<kInput>(inputs + kStep * kRowBytes, stride);
    multiply_tiles<kOffsets, kSum, kInput, kWeight>();
  });
}

// A block's scales and sums of inputs, transposed to one cache line per group.
struct InputNumbers {
  static constexpr int64_t kMostGroups = kSegmentLength / kLeastTileGroup;
  alignas(64) float scales[kMostGroups][kTileRows];
  alignas(64) float sums[kMostGroups][kTileRows];

  // Missing rows are zero.
  template <bool kSums>
  void read(const TileBlock& block) {
    for (int64_t r = 0; r < block.num_rows; ++r) {
      const char* const from = block.scales + r * block.input_stride;
      for (int64_t g = 0; g < block.num_groups; ++g) {
        scales[g][r] = load_one<float>(from + g * 4);
        if constexpr (kSums) sums[g][r] = load_one<float>(from + block.sums + g * 4);
      }
    }
    for (int64_t r = block.num_rows; r < kTileRows; ++r) {
      for (int64_t g = 0; g < block.num_groups; ++g) scales[g][r] = sums[g][r] = 0.0f;
    }
  }
};

// Accumulates like add_group() and add_totals() of group_sums.h, in the same order. A group takes
// kSteps tiles; with totals it takes one, and the sums stay in memory.
template <bool kOffsets, int kSteps, bool kTotals>
void multiply_group_block(const TileBlock& block) {
  static_assert(kSteps == 1 || !kTotals);
  alignas(64) char products[kSumTiles][kTileElements * 4] = {};
  const int64_t size = block.group_size, stride = block.input_stride;
  const int64_t groups = block.num_groups, length = groups * size;
  const int64_t steps = block.num_halves * groups;
  InputNumbers numbers;
  numbers.read<kOffsets>(block);
  TilePlace multiplied, used;
  const char* inputs = block.inputs;
  const char* weights = block.halves;
  HalfPanel half = half_panel_at(block.halves, length, groups);
  Vec values[kTileRows] = {};  // totals, or sums
  alignas(64) float sums[kTileRows][kTileColumns] = {};
  const auto step = [&]<int kStep>(int64_t i) __attribute__((always_inline)) {
    constexpr int kStored = (kStep + kSumTiles - kStoreLag) % kSumTiles;
    constexpr int kUsed = (kStep + kSumTiles - kUseLag) % kSumTiles;
    if (i < steps) {
      multiply_group<kOffsets, kStep, kSteps>(inputs, stride, weights);
      inputs += size;
      weights += size * kTileColumns;
      if (multiplied.advance(groups)) {
        inputs = block.inputs;
        weights += kHalfPanelBytes - length * kTileColumns;
      }
    }
    if (i >= kStoreLag && i - kStoreLag < steps) store_tile<kStored>(products[kStored], kRowBytes);
    if (i < kUseLag || i - kUseLag >= steps) return;
    const Vec scale = load(half.scales + used.part * kTileColumns);
    const Vec offset = kOffsets ? load(half.offsets + used.part * kTileColumns) : Vec{};
    const float* const input_scales = numbers.scales[used.part];
#pragma GCC unroll 16
    for (int r = 0; r < kTileRows; ++r) {
      const Ints product = (Ints)load_bits(products[kUsed] + r * kRowBytes);
      const Vec factor = kTotals ? scale : scale * splat(input_scales[r]);
      values[r] = fma(__builtin_convertvector(product, Vec), factor, values[r]);
      if constexpr (kOffsets) values[r] = fma(offset, splat(numbers.sums[used.part][r]), values[r]);
    }
    if constexpr (kTotals) {
      if (((used.part + 1) & (block.groups_per_input - 1)) != 0) {
        ++used.part;  // a half ends with a total
        return;
      }
#pragma GCC unroll 16
      for (int r = 0; r < kTileRows; ++r) {
        store(sums[r], fma(values[r], splat(input_scales[r]), load(sums[r])));
        values[r] = Vec{};
      }
    }
    const int64_t column_half = used.half;
    if (!used.advance(groups)) return;
    const HalfOutputs outputs(block, column_half, half.factors);
#pragma GCC unroll 16
    for (int r = 0; r < kTileRows; ++r) {
      const Vec sum = kTotals ? load(sums[r]) : values[r];
      if (r < block.num_rows) outputs.store_row(block.out + r * block.out_stride, sum);
      if constexpr (kTotals) store(sums[r], Vec{});
      values[r] = Vec{};
    }
    half = half_panel_at(block.halves + used.half * kHalfPanelBytes, length, groups);
  };
  for (int64_t i = 0; i < steps + kUseLag; i += kSumTiles) {
    step.template operator()<0>(i);
    step.template operator()<1>(i + 1);
    step.template operator()<2>(i + 2);
    step.template operator()<3>(i + 3);
  }
}

inline void configure_group_tiles(int64_t group_size, int64_t num_rows) {
  const int64_t bytes = min_of(group_size, kRowBytes);
  TileConfig config;
  for (int tile = 0; tile < kSumTiles; ++tile) config.set(tile, num_rows);
  config.set(kSumTiles, num_rows, bytes);
  config.set(kSumTiles + 1, num_rows, bytes);
  config.set(kSumTiles + 2, bytes / 4);
  config.set(kSumTiles + 3, bytes / 4);
  config.use();
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
