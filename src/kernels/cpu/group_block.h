// Blocks of rows in tile registers, group after group. Included by isa_group_tiles.cc alone.
#pragma once

#include "kernels/cpu/half_panel.h"
#include "kernels/cpu/tile_block.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

constexpr int kSumTiles = 4;
// The sums of a group leave their tile so many groups after their products, and are used so many
// after: neither waits for what it needs.
constexpr int kStoreLag = 2;
constexpr int kUseLag = 3;

// Tile kSum = inputs times weights of one group.
template <bool kOffsets, int kSum>
PL_INLINE void multiply_group(const char* inputs, int64_t stride, const char* weights,
                              int64_t group_size) {
  constexpr int kInput = kSumTiles + kSum % 2, kWeight = kSumTiles + 2 + kSum % 2;
  zero_tile<kSum>();
  for (int64_t k = 0; k < group_size; k += kRowBytes) {
    load_tile<kWeight>(weights + k * kTileColumns, kRowBytes);
    load_tile<kInput>(inputs + k, stride);
    multiply_tiles<kOffsets, kSum, kInput, kWeight>();
  }
}

// Where each row's scales begin; the last one's stand for those of rows that aren't there.
struct InputRows : RowNumbers<kTileRows> {
  explicit InputRows(const TileBlock& block) {
    for (int64_t r = 0; r < kTileRows; ++r) {
      begins[r] = block.scales + min_of(r, block.num_rows - 1) * block.input_stride;
    }
  }
};

// sums[r] += scale * float(sum of integer products), group after group, as add_group()
// adds them.
template <bool kOffsets>
void multiply_group_block(const TileBlock& block) {
  alignas(64) char products[kSumTiles][kTileElements * 4] = {};
  const int64_t size = block.group_size, groups = block.num_groups;
  const int64_t steps = block.num_halves * groups;
  const InputRows rows(block);
  TilePlace multiplied, used;
  Vec sums[kTileRows] = {};
  const auto step = [&]<int kStep>(int64_t i) __attribute__((always_inline)) {
    constexpr int kStored = (kStep + kSumTiles - kStoreLag) % kSumTiles;
    constexpr int kUsed = (kStep + kSumTiles - kUseLag) % kSumTiles;
    if (i < steps) {
      const int64_t k = multiplied.part * size;
      const char* const half = block.halves + multiplied.half * kHalfPanelBytes;
      multiply_group<kOffsets, kStep>(block.inputs + k, block.input_stride, half + k * kTileColumns,
                                      size);
      multiplied.advance(groups);
    }
    if (i >= kStoreLag && i - kStoreLag < steps) store_tile<kStored>(products[kStored], kRowBytes);
    if (i < kUseLag || i - kUseLag >= steps) return;
    const HalfPanel half =
        half_panel_at(block.halves + used.half * kHalfPanelBytes, groups * size, groups);
    const Vec scale = load(half.scales + used.part * kTileColumns);
    const Vec offset = kOffsets ? load(half.offsets + used.part * kTileColumns) : Vec{};
    const int64_t at = used.part * int64_t{sizeof(float)};
#pragma GCC unroll 16
    for (int r = 0; r < kTileRows; ++r) {
      const Ints product = (Ints)load_bits(products[kUsed] + r * kRowBytes);
      const Vec factor = scale * splat(rows.number<float>(r, at));
      sums[r] = fma(__builtin_convertvector(product, Vec), factor, sums[r]);
      if constexpr (kOffsets)
        sums[r] = fma(offset, splat(rows.number<float>(r, at + block.sums)), sums[r]);
    }
    if (used.part + 1 == groups) {
      const HalfOutputs outputs(block, used.half, half.factors);
#pragma GCC unroll 16
      for (int r = 0; r < kTileRows; ++r) {
        if (r < block.num_rows) outputs.store_row(block.out + r * block.out_stride, sums[r]);
        sums[r] = Vec{};
      }
    }
    used.advance(groups);
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
