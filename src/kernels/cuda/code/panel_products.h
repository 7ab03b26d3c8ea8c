// Products of panels by mma_bf16(): columns of weights times rows, 16 inputs at a time, both as
// packed_panels.h has them. That orders the inputs of a step and the columns of a tile as it suits
// the loads: which column is which row of an operand doesn't matter, and Hopper adds the 16
// products of a step exactly, in no order. On other GPUs the order counts: every kernel has this
// one.
#pragma once

#include "kernels/cuda/code/activations.h"
#include "kernels/cuda/code/packed_panels.h"
#include "kernels/cuda/code/rows.h"

namespace paceline::cuda {

constexpr uint32_t kStepsOfSegment = uint32_t{kSegmentLength} / kStepInputs;

struct alignas(16) Floats4 {
  float of[4];
};

PL_DEVICE uint32_t lane_group() { return lane_index() / 4; }     // g
PL_DEVICE uint32_t lane_in_group() { return lane_index() % 4; }  // t

// A lane's part of a step of a panel.
struct PanelStep {
  Words4 half[2];

  PL_DEVICE static PanelStep load(const Words4* step) {
    return {
        {load_as<Words4>(step + lane_index()), load_as<Words4>(step + kWarpLanes + lane_index())}};
  }
};

// 32 columns times kTiles * 8 rows: row kTiles * i + tile is column i of the tile's operand b.
template <int kTiles>
struct PanelSums {
  float of[2][kTiles][4];

  PL_DEVICE void clear() {
    PL_UNROLL
    for (auto& half : of) {
      PL_UNROLL
      for (auto& tile : half) {
        for (float& sum : tile) sum = 0.0f;
      }
    }
  }
  PL_DEVICE void add(const PanelSums& other) {
    PL_UNROLL
    for (int half = 0; half < 2; ++half) {
      PL_UNROLL
      for (int tile = 0; tile < kTiles; ++tile) {
        PL_UNROLL
        for (int i = 0; i < 4; ++i) of[half][tile][i] = of[half][tile][i] + other.of[half][tile][i];
      }
    }
  }
  PL_DEVICE void multiply(const PanelStep& weights, const uint32_t (&inputs)[kTiles][2]) {
    PL_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) {
      PL_UNROLL
      for (int half = 0; half < 2; ++half) {
        mma_bf16(of[half][tile], weights.half[half].words, inputs[tile]);
      }
    }
  }
  // Columns 4 g to 4 g + 3 of row kTiles * (2 t + parity) + tile.
  PL_DEVICE Floats4 columns(int parity, int tile) const {
    return {{of[0][tile][parity], of[0][tile][2 + parity], of[1][tile][parity],
             of[1][tile][2 + parity]}};
  }
};

// Calls body(row of the tile, its 4 columns).
template <int kTiles, class Body>
PL_DEVICE void for_each_row(Body&& body) {
  PL_UNROLL
  for (int parity = 0; parity < 2; ++parity) {
    PL_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) {
      body(kTiles * (2 * static_cast<int>(lane_in_group()) + parity) + tile, parity, tile);
    }
  }
}

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

// Sums of several panels.
template <int kPanels, int kTiles>
struct PanelSumsOf {
  static constexpr uint32_t kPieces = 2 * kPanels * kTiles;
  PanelSums<kTiles> of_panel[kPanels];

  PL_DEVICE void clear() {
    for (auto& sums : of_panel) sums.clear();
  }
  PL_DEVICE void add(const PanelSumsOf& other) {
    PL_UNROLL
    for (int i = 0; i < kPanels; ++i) of_panel[i].add(other.of_panel[i]);
  }
  // A thread's pieces of 4 sums, `threads` apart.
  PL_DEVICE void save(Floats4* to, uint32_t threads) const {
    PL_UNROLL
    for (int i = 0; i < kPanels; ++i) {
      PL_UNROLL
      for (int half = 0; half < 2; ++half) {
        PL_UNROLL
        for (int tile = 0; tile < kTiles; ++tile) {
          const float(&sums)[4] = of_panel[i].of[half][tile];
          store_as(to + ((i * 2 + half) * kTiles + tile) * threads + thread_index(),
                   Floats4{{sums[0], sums[1], sums[2], sums[3]}});
        }
      }
    }
  }
  PL_DEVICE void add_saved(const Floats4* from, uint32_t threads) {
    PL_UNROLL
    for (int i = 0; i < kPanels; ++i) {
      PL_UNROLL
      for (int half = 0; half < 2; ++half) {
        PL_UNROLL
        for (int tile = 0; tile < kTiles; ++tile) {
          float(&sums)[4] = of_panel[i].of[half][tile];
          const auto saved =
              load_as<Floats4>(from + ((i * 2 + half) * kTiles + tile) * threads + thread_index());
          PL_UNROLL
          for (int j = 0; j < 4; ++j) sums[j] = sums[j] + saved.of[j];
        }
      }
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
PL_DEVICE void write_columns(const PanelColumns& columns, int64_t place, int64_t num_columns,
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
