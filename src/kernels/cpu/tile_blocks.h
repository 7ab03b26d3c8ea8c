// Sums of a block of rows and some panels in the tile registers of AMX (Intel SDM, volume 1,
// chapter 18). One order of sums for any number of rows: per element and 32 values of K, the even
// and the odd products are summed from zero in ascending order, fused, denormals as zeros; then
// their sum is added. Included by isa_matmul_tiles.cc alone.
#pragma once

#include "kernels/cpu/tile_registers.h"
#include "kernels/cpu/vec.h"
#include "kernels/packed_layout.h"

namespace paceline::PACELINE_ISA_NAMESPACE {
namespace {

constexpr int64_t kTileDepth = 32;  // values of K in a row of inputs

// The second-level cache, 2 MB on every processor with tiles, holds the inputs of this many bytes
// of rows to one segment while panels pass, kGroupPanels at a time: a block of rows is multiplied
// by these before the next block.
constexpr int64_t kChunkInputBytes = 1 << 20;
constexpr int64_t kGroupPanels = 4;
constexpr int64_t kBlockRows = 2 * kTileRows;
// A step's weights lie side by side: 16 pairs of K for 32 columns.
constexpr int64_t kStepWeights = kTileDepth * kPanelWidth;
constexpr int64_t kPairBytes = kPanelWidth * 2 * static_cast<int64_t>(sizeof(Bf16));
// Few rows stream kLowPanels panels side by side, kStepsAtOnce steps at a time.
constexpr int64_t kLowPanels = 8;
constexpr int64_t kStepsAtOnce = 1;
constexpr uintptr_t kPrefetchBytes = kStepsAtOnce * kStepWeights * sizeof(Bf16);

// For blocks of up to 16 rows, then 16 more. Tiles 0 to 3 are sums, 4 and 5 inputs (or 5 further
// weights), 6 and 7 weights.
void configure(int64_t upper_rows, int64_t lower_rows) {
  TileConfig config;
  const bool is_low = lower_rows == 0;
  config.set(0, upper_rows);
  config.set(1, upper_rows);
  config.set(2, is_low ? upper_rows : lower_rows);
  config.set(3, is_low ? upper_rows : lower_rows);
  config.set(4, upper_rows);
  config.set(5, is_low ? kTileRows : lower_rows);
  config.set(6, kTileRows);
  config.set(7, kTileRows);
  config.use();
}

// Rows of a block times one panel (or up to 8, of a low block), to one segment of K.
struct Block {
  const Bf16* inputs;
  int64_t input_stride;  // bytes
  int64_t num_rows;
  const Bf16* weights;
  int64_t panel_elements;
  int64_t num_steps;
  int64_t tail;            // values of K behind the last whole step
  int64_t prefetch_bytes;  // of a single row
  bool continues;          // the sums that are there, of up to 16 rows
  // Of more than 16 rows: bytes that are prefetched meanwhile, at each step the next ones.
  uintptr_t next;
  int64_t next_step;
};

// The pairs of K behind the last whole step, padded with zeros to a step: inputs have zeros there,
// but the bytes behind a panel may be NaN.
struct alignas(64) TailWeights {
  Bf16 values[kStepWeights];

  TailWeights(const Bf16* from, int64_t tail) {
    const int64_t count = tail * kPanelWidth;
    __builtin_memcpy(values, from, static_cast<size_t>(count) * sizeof(Bf16));
    for (int64_t i = count; i < kStepWeights; ++i) values[i] = {0};
    finish_stores();
  }
};

// Up to 32 rows by 32 columns: each loaded tile is used in two products.
PL_INLINE void add_high_step(const Bf16* inputs, int64_t input_stride, const Bf16* weights) {
  const auto* const lower = reinterpret_cast<const char*>(inputs) + kTileRows * input_stride;
  _tile_loadd(4, inputs, input_stride);
  _tile_loadd(5, lower, input_stride);
  _tile_loadd(6, weights, kPairBytes);
  _tile_loadd(7, weights + 2 * kTileColumns, kPairBytes);
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(1, 4, 7);
  _tile_dpbf16ps(3, 5, 7);
}

void clear_high() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

// Sums of a block, `stride` elements apart, to be continued.
void load_high_sums(const float* sums, int64_t stride) {
  const auto stride_bytes = static_cast<size_t>(stride) * sizeof(float);
  _tile_loadd(0, sums, stride_bytes);
  _tile_loadd(1, sums + kTileColumns, stride_bytes);
  _tile_loadd(2, sums + kTileRows * stride, stride_bytes);
  _tile_loadd(3, sums + kTileRows * stride + kTileColumns, stride_bytes);
}

void multiply_high(const Block& block) {
  const Bf16* inputs = block.inputs;
  const Bf16* weights = block.weights;
  uintptr_t next = block.next;
  for (int64_t step = 0; step < block.num_steps; ++step) {
    if (step % kWakeSteps == 0) keep_stores_awake();
    for (int64_t line = 0; line < block.next_step; line += kRowBytes, next += kRowBytes) {
      __builtin_prefetch(reinterpret_cast<const void*>(next), 0, kSecondLevel);
    }
    add_high_step(inputs, block.input_stride, weights);
    inputs += kTileDepth;
    weights += kStepWeights;
  }
  if (block.tail > 0) {
    const TailWeights tail(weights, block.tail);
    add_high_step(inputs, block.input_stride, tail.values);
  }
}

// Prefetches half of the weights of the panel's next turn.
PL_INLINE void prefetch_half(const Bf16* weights) {
  const auto from = reinterpret_cast<uintptr_t>(weights) + kPrefetchBytes;
#pragma GCC unroll 16
  for (int64_t line = 0; line < kStepWeights; line += kRowBytes) {
    __builtin_prefetch(reinterpret_cast<const void*>(from + static_cast<uintptr_t>(line)));
  }
}

// Up to 16 rows by 64 columns, two panels.
template <int kPanels>
PL_INLINE void add_low_step(const Bf16* inputs, int64_t input_stride, const Bf16* first,
                            const Bf16* second) {
  _tile_loadd(4, inputs, input_stride);
  prefetch_half(first);
  _tile_loadd(5, first, kPairBytes);
  _tile_dpbf16ps(0, 4, 5);
  prefetch_half(first + kStepWeights / 2);
  _tile_loadd(6, first + 2 * kTileColumns, kPairBytes);
  _tile_dpbf16ps(1, 4, 6);
  if constexpr (kPanels == 2) {
    prefetch_half(second);
    _tile_loadd(7, second, kPairBytes);
    _tile_dpbf16ps(2, 4, 7);
    prefetch_half(second + kStepWeights / 2);
    _tile_loadd(5, second + 2 * kTileColumns, kPairBytes);
    _tile_dpbf16ps(3, 4, 5);
  }
}

// Loads the sums of up to 16 rows and two panels, to be continued.
template <int kPanels>
PL_INLINE void load_low(const float* sums) {
  _tile_loadd(0, sums, kRowBytes);
  _tile_loadd(1, sums + kTileElements, kRowBytes);
  if constexpr (kPanels == 2) {
    _tile_loadd(2, sums + 2 * kTileElements, kRowBytes);
    _tile_loadd(3, sums + 3 * kTileElements, kRowBytes);
  }
}

template <int kPanels>
PL_INLINE void keep_low(float* sums) {
  _tile_stored(0, sums, kRowBytes);
  _tile_stored(1, sums + kTileElements, kRowBytes);
  if constexpr (kPanels == 2) {
    _tile_stored(2, sums + 2 * kTileElements, kRowBytes);
    _tile_stored(3, sums + 3 * kTileElements, kRowBytes);
  }
}

// Steps [first, last) of one or two panels; the tail behind the last.
template <int kPanels>
void add_low_steps(const Block& block, int64_t first, int64_t last, float* sums) {
  if (first == 0 && !block.continues) {
    clear_high();
  } else {
    load_low<kPanels>(sums);
  }
  const int64_t to_second = (kPanels - 1) * block.panel_elements;
  const Bf16* inputs = block.inputs + first * kTileDepth;
  const Bf16* weights = block.weights + first * kStepWeights;
  for (int64_t step = first; step < last; ++step) {
    add_low_step<kPanels>(inputs, block.input_stride, weights, weights + to_second);
    inputs += kTileDepth;
    weights += kStepWeights;
  }
  if (last == block.num_steps && block.tail > 0) {
    const TailWeights upper(weights, block.tail), lower(weights + to_second, block.tail);
    add_low_step<kPanels>(inputs, block.input_stride, upper.values, lower.values);
  }
  keep_low<kPanels>(sums);
}

// Up to 16 rows times up to 8 panels, a few steps of two panels at a time: eight streams saturate
// the memory. Two panels or one keep their sums in tiles.
void multiply_low(Block block, int64_t num_panels, float* sums) {
  const Bf16* const weights = block.weights;
  const int64_t steps_at_once = num_panels <= 2 ? block.num_steps : kStepsAtOnce;
  int64_t first = 0;
  do {
    const int64_t last = min_of(first + steps_at_once, block.num_steps);
    for (int64_t panel = 0; panel < num_panels; panel += 2) {
      block.weights = weights + panel * block.panel_elements;
      float* const panel_sums = sums + panel * 2 * kTileElements;
      if (panel + 1 < num_panels) {
        add_low_steps<2>(block, first, last, panel_sums);
      } else {
        add_low_steps<1>(block, first, last, panel_sums);
      }
    }
    first = last;
  } while (first < block.num_steps);
}

}  // namespace
}  // namespace paceline::PACELINE_ISA_NAMESPACE
