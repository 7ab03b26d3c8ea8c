// Products of panels: columns of weights times rows, 16 inputs at a time, both as packed_panels.h
// has them. The order of the inputs of a step suits the loads: Hopper adds the 16 products of a
// step exactly, in no order. On other GPUs the order counts.
#pragma once

#include "kernels/cuda/code/activations.h"
#include "kernels/cuda/code/code_panels.h"
#include "kernels/cuda/code/packed_panels.h"
#include "kernels/cuda/code/rows.h"

namespace paceline::cuda {

constexpr uint32_t kStepsOfSegment = uint32_t{kSegmentLength} / kStepInputs;

struct alignas(16) Floats4 {
  float of[4];
};

// Inputs `first` to first + 3 of a row; zeros behind its end. Where `is_aligned`, each row is at a
// multiple of 16 bytes and the width one of 4. Without a branch between loads, so that a caller's
// loads are under way together.
PL_DEVICE Floats4 inputs_of_row(const ConstRows& x, int64_t row, uint32_t first, uint32_t width,
                                bool is_aligned) {
  const bool is_present = first < width;
  const float* const from = x.row(is_present ? row : 0) + (is_present ? first : 0);
  if (is_aligned) {
    const auto quad = load_as<Floats4>(from);
    return is_present ? quad : Floats4{};
  }
  Floats4 quad{};
  PL_UNROLL
  for (uint32_t i = 0; i < 4; ++i) {
    if (first + i < width) quad.of[i] = from[i];
  }
  return quad;
}

PL_DEVICE uint32_t lane_group() { return lane_index() / 4; }     // g
PL_DEVICE uint32_t lane_in_group() { return lane_index() % 4; }  // t

// A lane's part of a step of 16 columns as mma_bf16() takes it: columns g and g + 8, inputs 4 t to
// 4 t + 3. `first` is the first of the stage's two groups of columns.
struct HalfStep {
  Words2 groups[2];

  PL_DEVICE static uint32_t place(uint32_t step_of_stage) {
    return (2 * step_of_stage + lane_in_group() / 2) * kCoreBytes + lane_group() * 16 +
           lane_in_group() % 2 * 8;
  }
  PL_DEVICE static HalfStep load(const std::byte* first, uint32_t step_of_stage) {
    const std::byte* const from = first + place(step_of_stage);
    return {{load_as<Words2>(from), load_as<Words2>(from + kCoreGroupBytes)}};
  }
  PL_DEVICE void multiply(float (&sums)[4], const uint32_t (&inputs)[2]) const {
    const uint32_t a[4] = {groups[0].words[0], groups[1].words[0], groups[0].words[1],
                           groups[1].words[1]};
    mma_bf16(sums, a, inputs);
  }
};

// The sums of a panel's 32 columns and 8 rows.
struct PanelSums {
  float of[2][4];

  PL_DEVICE void clear() {
    PL_UNROLL
    for (auto& half : of) {
      PL_UNROLL
      for (float& sum : half) sum = 0.0f;
    }
  }
  // `stage`: of the panel; a lane's inputs are 4 t to 4 t + 3 of row g.
  PL_DEVICE void multiply(const std::byte* stage, uint32_t step_of_stage,
                          const uint32_t (&inputs)[2]) {
    PL_UNROLL
    for (int half = 0; half < 2; ++half) {
      HalfStep::load(stage + half * 2 * kCoreGroupBytes, step_of_stage).multiply(of[half], inputs);
    }
  }
  // Calls body(row, column of the panel, sum) for the lane's.
  template <class Body>
  PL_DEVICE void for_each(Body&& body) const {
    PL_UNROLL
    for (uint32_t i = 0; i < 8; ++i) {
      body(2 * lane_in_group() + i % 2, lane_group() + i / 2 * kCoreColumns, of[i / 4][i % 4]);
    }
  }
};

// Neighbouring columns of a matrix, from the panel that holds the first.
template <class Panels>
struct ColumnsOf {
  Panels weights;
  const float* bias = nullptr;  // of all columns of the matrix
  int64_t first = 0;

  // The panel that is `index` behind the first.
  PL_DEVICE const std::byte* panel(int64_t index) const {
    return weights.first + (first / kPanelWidth + index) * weights.panel_bytes;
  }
  // The place in the output of column `column` of that panel; negative before the first.
  PL_DEVICE int64_t place(int64_t index, int64_t column) const {
    return index * kPanelWidth + column - first % kPanelWidth;
  }
  PL_DEVICE float with_bias(float total, int64_t place) const {
    return bias != nullptr ? total + bias[first + place] : total;
  }
};
using PanelColumns = ColumnsOf<PlainPanels>;
using GroupColumns = ColumnsOf<GroupedPanels>;

// A thread's sums of a tile.
template <int kCount>
struct TileSums {
  static constexpr uint32_t kPieces = kCount / 4;
  float of[kCount];

  PL_DEVICE void clear() {
    PL_UNROLL
    for (float& sum : of) sum = 0.0f;
  }
  PL_DEVICE void add(const float (&sums)[kCount]) {
    PL_UNROLL
    for (int i = 0; i < kCount; ++i) of[i] = of[i] + sums[i];
  }
  // Pieces of 4 sums, `threads` apart.
  PL_DEVICE void save(Floats4* to, uint32_t threads) const {
    PL_UNROLL
    for (int i = 0; i < kCount; i += 4) {
      store_as(to + i / 4 * threads + thread_index(),
               Floats4{{of[i], of[i + 1], of[i + 2], of[i + 3]}});
    }
  }
  PL_DEVICE void add_saved(const Floats4* from, uint32_t threads) {
    PL_UNROLL
    for (int i = 0; i < kCount; i += 4) {
      const auto saved = load_as<Floats4>(from + i / 4 * threads + thread_index());
      PL_UNROLL
      for (int j = 0; j < 4; ++j) of[i + j] = of[i + j] + saved.of[j];
    }
  }
};

// Segments of K that blocks compute apart; the last one to finish adds them in ascending order.
struct SplitSums {
  uint32_t num_segments = 0;     // 0: each block computes all of K
  Floats4* partials = nullptr;   // [tiles, segments, pieces, threads]
  uint32_t* arrivals = nullptr;  // of the tiles: zero before and after
};

// Saves the segment's sums of a tile, which the block's first `threads` threads have. Returns
// whether this block is the last of the tile's: `sums` are then those of all segments. `is_last` is
// shared by the block.
template <class Sums>
PL_DEVICE bool add_segments(const SplitSums& split, int64_t tile, uint32_t segment,
                            uint32_t threads, Sums& sums, uint32_t& is_last) {
  const int64_t of_segment = int64_t{Sums::kPieces} * threads;
  Floats4* const of_tile = split.partials + tile * split.num_segments * of_segment;
  const bool has_sums = thread_index() < threads;
  if (has_sums) sums.save(of_tile + segment * of_segment, threads);
  publish_writes();
  if (thread_index() == 0) {
    const bool is_here_last = atomic_add(split.arrivals + tile, 1) + 1 == split.num_segments;
    is_last = is_here_last ? 1 : 0;
    if (is_here_last) split.arrivals[tile] = 0;
  }
  sync_threads();
  if (is_last != 1) return false;  // poison is neither
  if (!has_sums) return true;
  fence_device();
  sums.clear();
  for (uint32_t i = 0; i < split.num_segments; ++i) {
    sums.add_saved(of_tile + i * of_segment, threads);
  }
  return true;
}

// Writes 4 neighbouring columns, as far as they are among out's, with their bias.
template <class Panels>
PL_DEVICE void write_columns(const ColumnsOf<Panels>& columns, int64_t place, int64_t num_columns,
                             Floats4 totals, float* out) {
  if (place >= 0 && place + 4 <= num_columns &&
      reinterpret_cast<uintptr_t>(out + place) % sizeof(Floats4) == 0) {
    PL_UNROLL
    for (int i = 0; i < 4; ++i) totals.of[i] = columns.with_bias(totals.of[i], place + i);
    return store_as(out + place, totals);
  }
  PL_UNROLL
  for (int i = 0; i < 4; ++i) {
    if (place + i < 0 || place + i >= num_columns) continue;
    out[place + i] = columns.with_bias(totals.of[i], place + i);
  }
}

}  // namespace paceline::cuda
