// Products of many rows with bfloat16 weights: tiles of columns and rows, both from panels, which
// warpgroups multiply. One warp copies stages of 64 inputs to shared memory, into a ring that runs
// on from tile to tile; the others have 64 columns each, the tile's rows, and the sums of a segment
// of K and of all before it in registers.
#pragma once

#include "kernels/cuda/code/kernel_name.h"
#include "kernels/cuda/code/pack_inputs.h"
#include "kernels/cuda/code/panel_products.h"

namespace paceline::cuda {

struct TileParams {
  // Of a gated product: the gate's, and those that it multiplies. Their first columns have the same
  // place in a panel.
  PanelColumns columns[2];
  int64_t num_columns = 0;
  InputPanels x;
  int64_t num_rows = 0;
  int64_t num_row_tiles = 0;
  int64_t num_column_tiles = 0;
  Rows out;
  ActivationKind activation = ActivationKind::silu;
  InputPanels gated_out;  // of a gated product, instead of out
  SplitSums split;
};

// kGroups warpgroups side by side. A gated product's have 32 columns of each matrix.
template <uint32_t kGroups, uint32_t kRows>
struct TileShape {
  static constexpr uint32_t kColumnPanels = 2 * kGroups;
  static constexpr uint32_t kColumns = kColumnPanels * uint32_t{kPanelWidth};
  static constexpr uint32_t kRowsOfPanel = kRows < kPanelWidth ? kRows : uint32_t{kPanelWidth};
  static constexpr uint32_t kRowPanels = kRows / kRowsOfPanel;
  static constexpr uint32_t kWeightBytes = kColumnPanels * kStageBytes;
  static constexpr uint32_t kInputBytes = kRows / kCoreColumns * kCoreGroupBytes;
  static constexpr uint32_t kMultiplying = kGroups * kGroupThreads;  // threads
  static constexpr uint32_t kMultipliers = kMultiplying / kWarpLanes;
  // On a multiprocessor of Hopper, by their registers and shared memory.
  static constexpr uint32_t kBlocksAtOnce = kGroups == 1 ? 3 : kRows <= 64 ? 2 : 1;
  static constexpr uint32_t kBytesOfBlock = (225 * 1024) / kBlocksAtOnce - 1024;
  static constexpr uint32_t kMostStages = kBytesOfBlock / (kWeightBytes + kInputBytes);
  static constexpr uint32_t kStages = kMostStages < 8 ? kMostStages : 8;
};

template <class Shape>
struct TileShared {
  alignas(128) std::byte weights[Shape::kStages][Shape::kWeightBytes];
  alignas(128) std::byte inputs[Shape::kStages][Shape::kInputBytes];
  BarrierState landed[Shape::kStages];
  BarrierState read[Shape::kStages];
  uint32_t is_last;
};

// Blocks that run at the same time share rows and columns: tiles are taken in bands of 8 row tiles,
// column by column.
struct TilePlace {
  int64_t row_tile;
  int64_t column_tile;
};
PL_DEVICE TilePlace tile_place(const TileParams& p, int64_t index) {
  constexpr int64_t kBand = 8;
  const int64_t first = index / (kBand * p.num_column_tiles) * kBand;
  const int64_t left = p.num_row_tiles - first, height = left < kBand ? left : kBand;
  const int64_t in_band = index - first * p.num_column_tiles;
  return {first + in_band % height, in_band / height};
}

// The panels of a tile. A gated product alternates those of the gate and those that it multiplies.
// Behind the last panel of columns or rows that panel stands again, and nothing is written.
template <class Shape, bool kGated>
struct Tile {
  const TileParams& p;
  TilePlace place;

  PL_DEVICE int64_t column_panel(uint32_t i) const {
    return kGated ? place.column_tile * (Shape::kColumnPanels / 2) + i / 2
                  : place.column_tile * Shape::kColumnPanels + i;
  }
  PL_DEVICE const PanelColumns& columns(uint32_t i) const { return p.columns[kGated ? i % 2 : 0]; }
  PL_DEVICE int64_t first_row() const {
    return place.row_tile * (Shape::kRowPanels * Shape::kRowsOfPanel);
  }

  PL_DEVICE const std::byte* weights(uint32_t i) const {
    const PanelColumns& from = columns(i);
    const int64_t last = (from.first % kPanelWidth + p.num_columns - 1) / kPanelWidth;
    return from.panel(column_panel(i) < last ? column_panel(i) : last);
  }
  PL_DEVICE const std::byte* inputs(uint32_t i) const {
    const int64_t wanted = first_row() / kPanelWidth + i, last = (p.num_rows - 1) / kPanelWidth;
    return reinterpret_cast<const std::byte*>(p.x.panel(wanted < last ? wanted : last));
  }
};

// Which stage of the ring is next, and the parity of its phase.
template <uint32_t kStages>
struct RingPlace {
  uint32_t slot = 0;
  uint32_t parity = 0;

  PL_DEVICE void advance() {
    if (++slot < kStages) return;
    slot = 0;
    parity ^= 1;
  }
};

constexpr std::string_view rows_suffix(uint32_t rows) {
  return rows == 16    ? "16_rows"
         : rows == 32  ? "32_rows"
         : rows == 64  ? "64_rows"
         : rows == 128 ? "128_rows"
                       : "192_rows";
}

// Blocks along x of the grid take tiles in turn; along z are the segments of K where each has a
// block of its own, for one tile.
template <uint32_t kGroups, uint32_t kRows, bool kGated>
struct MatmulTiles {
  using Shape = TileShape<kGroups, kRows>;
  static constexpr KernelName kFullName{kGated ? "gated_" : "matmul_",
                                        kGroups == 1 ? "64_columns_" : "128_columns_",
                                        rows_suffix(kRows)};
  static constexpr std::string_view kName = kFullName.text();
  static constexpr uint32_t kMatrices = kGated ? 2 : 1;
  static constexpr uint32_t kMultiplying = Shape::kMultiplying;
  static constexpr uint32_t kBlocksAtOnce = Shape::kBlocksAtOnce;
  // Warpgroups whose sums need more registers than a thread has by itself take those of the warp
  // that copies, which is then one of a group.
  static constexpr bool kTakesRegisters = kGroups == 2 && kRows != 128;
  static constexpr uint32_t kThreads =
      kMultiplying + (kTakesRegisters ? kGroupThreads : uint32_t{kWarpLanes});
  // A block has no more than its threads have when it begins: it would wait for ever.
  static constexpr uint32_t kGivenRegisters = 24, kTakenRegisters = kRows == 192 ? 240 : 104;
  static constexpr uint32_t kFirstRegisters = 65536 / (kThreads * kBlocksAtOnce) / 8 * 8;
  static_assert(!kTakesRegisters ||
                kMultiplying * kTakenRegisters + kGroupThreads * kGivenRegisters <=
                    kThreads * kFirstRegisters);
  static constexpr bool kSplits = kGroups == 1;  // segments of K may have blocks of their own
  static constexpr bool kBeginsLate = true;      // blocks fill a multiprocessor's shared memory
  static constexpr int kSums = kRows / 2;        // of a thread
  using Params = TileParams;
  using Shared = TileShared<Shape>;
  using Sums = TileSums<kSums>;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    if constexpr (kTakesRegisters && !kCanTakeRegisters) return;
    make_barriers(shared);
    Sums totals;
    if (warp_index() >= Shape::kMultipliers) {
      if constexpr (kTakesRegisters) give_registers<kGivenRegisters>();
      if (warp_index() == Shape::kMultipliers) copy_tiles(p, shared);
    } else {
      if constexpr (kTakesRegisters) take_registers<kTakenRegisters>();
      multiply_tiles(p, shared, totals);
    }
    if constexpr (kSplits) {
      if (p.split.num_segments == 0) return;
      if (add_segments(p.split, block_index().x, block_index().z, kMultiplying, totals,
                       shared.is_last) &&
          warp_index() < Shape::kMultipliers) {
        write({p, tile_place(p, block_index().x)}, totals);
      }
    }
  }

 private:
  using OwnTile = Tile<Shape, kGated>;
  using Place = RingPlace<Shape::kStages>;
  static constexpr uint32_t kStagesOfSegment = kStepsOfSegment / kStageSteps;

  // Stages of K.
  struct Range {
    uint32_t begin;
    uint32_t count;
  };
  PL_DEVICE static Range own_range(const Params& p) {
    const auto all = static_cast<uint32_t>(num_stages(p.columns[0].weights.k));
    if (!is_split(p)) return {0, all};
    const uint32_t begin = block_index().z * kStagesOfSegment, left = all - begin;
    return {begin, left < kStagesOfSegment ? left : kStagesOfSegment};
  }

  PL_DEVICE static bool is_split(const Params& p) { return kSplits && p.split.num_segments > 0; }

  PL_DEVICE static void copy_tiles(const Params& p, Shared& shared) {
    const Range range = own_range(p);
    const int64_t tiles = p.num_row_tiles * p.num_column_tiles;
    Place place;
    for (int64_t index = block_index().x; index < tiles; index += grid_size().x) {
      copy_stages({p, tile_place(p, index)}, shared, range, place);
    }
  }
  PL_DEVICE static void multiply_tiles(const Params& p, Shared& shared, Sums& totals) {
    const Range range = own_range(p);
    const int64_t tiles = p.num_row_tiles * p.num_column_tiles;
    Place place;
    for (int64_t index = block_index().x; index < tiles; index += grid_size().x) {
      multiply_stages(shared, range, place, totals);
      if (!is_split(p)) write({p, tile_place(p, index)}, totals);
    }
  }

  PL_DEVICE static uint32_t own_group() { return warp_index() / 4; }

  PL_DEVICE static void make_barriers(Shared& shared) {
    if (thread_index() == 0) {
      for (uint32_t i = 0; i < Shape::kStages; ++i) {
        init_barrier(shared.landed[i], kCopyArrivals);
        init_barrier(shared.read[i], Shape::kMultipliers);
      }
    }
    sync_threads();
  }

  PL_DEVICE static void copy_stages(const OwnTile& tile, Shared& shared, Range range,
                                    Place& place) {
    const std::byte *weights[Shape::kColumnPanels], *inputs[Shape::kRowPanels];
    const int64_t skipped = int64_t{range.begin} * kStageBytes;
    PL_UNROLL
    for (uint32_t i = 0; i < Shape::kColumnPanels; ++i) weights[i] = tile.weights(i) + skipped;
    PL_UNROLL
    for (uint32_t i = 0; i < Shape::kRowPanels; ++i) inputs[i] = tile.inputs(i) + skipped;
    for (uint32_t stage = 0; stage < range.count; ++stage, place.advance()) {
      BarrierState& landed = shared.landed[place.slot];
      wait_barrier(shared.read[place.slot], place.parity ^ 1);  // the first round waits for nothing
      begin_bulk(landed, Shape::kWeightBytes + Shape::kInputBytes);
      PL_UNROLL
      for (uint32_t i = 0; i < Shape::kColumnPanels; ++i) {
        copy_weights(shared.weights[place.slot], i, weights[i], landed);
        weights[i] += kStageBytes;
      }
      PL_UNROLL
      for (uint32_t i = 0; i < Shape::kRowPanels; ++i) {
        constexpr uint32_t kBytes = Shape::kInputBytes / Shape::kRowPanels;
        copy_bulk(shared.inputs[place.slot] + i * kBytes, inputs[i], kBytes, landed);
        inputs[i] += kStageBytes;
      }
      end_bulk(landed);
    }
  }

  // A gated product's groups of 8 columns alternate, so that a thread has the sums of both matrices
  // for a column.
  PL_DEVICE static void copy_weights(std::byte* to, uint32_t panel, const std::byte* from,
                                     BarrierState& landed) {
    if constexpr (kGated) {
      std::byte* const of_group = to + panel / 2 * (2 * kStageBytes) + panel % 2 * kCoreGroupBytes;
      PL_UNROLL
      for (uint32_t i = 0; i < kPanelGroups; ++i) {
        copy_bulk(of_group + 2 * i * kCoreGroupBytes, from + i * kCoreGroupBytes, kCoreGroupBytes,
                  landed);
      }
    } else {
      copy_bulk(to + panel * kStageBytes, from, kStageBytes, landed);
    }
  }

  // The totals of all segments of the range.
  PL_DEVICE static void multiply_stages(Shared& shared, Range range, Place& place, Sums& totals) {
    float sums[kSums];
    for (uint32_t begin = 0; begin < range.count; begin += kStagesOfSegment) {
      const uint32_t left = range.count - begin;
      const uint32_t count = left < kStagesOfSegment ? left : kStagesOfSegment;
      uint32_t before = 0;
      for (uint32_t stage = 0; stage < count; ++stage, place.advance()) {
        wait_barrier(shared.landed[place.slot], place.parity);
        multiply_stage(shared, place.slot, stage > 0, sums);
        if (stage > 0) {
          wait_products<1>(sums);
          arrive_as_warp(shared.read[before]);
        }
        before = place.slot;
      }
      wait_products<0>(sums);
      arrive_as_warp(shared.read[before]);
      PL_UNROLL
      for (int i = 0; i < kSums; ++i) totals.of[i] = begin == 0 ? sums[i] : totals.of[i] + sums[i];
    }
  }

  PL_DEVICE static void multiply_stage(const Shared& shared, uint32_t slot, bool adds,
                                       float (&sums)[kSums]) {
    const std::byte* const weights = shared.weights[slot] + own_group() * (2 * kStageBytes);
    begin_products();
    PL_UNROLL
    for (uint32_t step = 0; step < kStageSteps; ++step) {
      const uint32_t skipped = step * 2 * kCoreBytes;
      multiply_group<kRows>(
          sums, CoreMatrices{weights + skipped, kCoreBytes, kCoreGroupBytes},
          CoreMatrices{shared.inputs[slot] + skipped, kCoreBytes, kCoreGroupBytes},
          adds || step > 0);
    }
    commit_products();
  }

  PL_DEVICE static void write(const OwnTile& tile, const Sums& totals) {
    if constexpr (kGated) {
      with_activation(tile.p.activation,
                      [&]<ActivationKind kKind>() { write_gated<kKind>(tile, totals); });
    } else {
      write_plain(tile, totals);
    }
  }

  PL_DEVICE static void write_plain(const OwnTile& tile, const Sums& totals) {
    const uint32_t warp = warp_index() % 4, panel = 2 * own_group() + warp / 2;
    const PanelColumns& columns = tile.columns(panel);
    PL_UNROLL
    for (uint32_t half = 0; half < 2; ++half) {
      const int64_t place = columns.place(tile.column_panel(panel),
                                          (2 * (warp % 2) + half) * kCoreColumns + lane_group());
      if (place < 0 || place >= tile.p.num_columns) continue;
      const bool has_bias = columns.bias != nullptr;
      const float bias = has_bias ? columns.bias[columns.first + place] : 0.0f;
      PL_UNROLL
      for (uint32_t i = 0; i < kRows / 4; ++i) {
        const int64_t row = tile.first_row() + i / 2 * 8 + 2 * lane_in_group() + i % 2;
        if (row >= tile.p.num_rows) continue;
        const float total = totals.of[i / 2 * 4 + half * 2 + i % 2];
        tile.p.out.row(row)[place] = has_bias ? total + bias : total;  // without a bias -0 stays
      }
    }
  }

  // The inputs of the next product. Lanes g and g ^ 1 exchange a row, so that each has a pair of
  // inputs.
  template <ActivationKind kKind>
  PL_DEVICE static void write_gated(const OwnTile& tile, const Sums& totals) {
    const uint32_t group = lane_group(), panel = 2 * own_group();
    const int64_t first =
        tile.columns(panel).place(tile.column_panel(panel), warp_index() % 4 * kCoreColumns);
    const int64_t place = first + group;
    const Bias gate(tile.p, 0, place), up(tile.p, 1, place);
    const int64_t last_panel = (tile.p.num_rows - 1) / kPanelWidth;
    PL_UNROLL
    for (uint32_t i = 0; i < kRows / 8; ++i) {
      float values[2];
      PL_UNROLL
      for (uint32_t j = 0; j < 2; ++j) {
        const float value =
            activate_gate(kKind, gate.add(totals.of[4 * i + j]), up.add(totals.of[4 * i + 2 + j]));
        values[j] = place < tile.p.num_columns ? value : 0.0f;  // behind the last column
      }
      const bool is_even = group % 2 == 0;
      const float other = shuffle_xor(is_even ? values[1] : values[0], 4);
      const uint32_t pair = is_even ? pack_bf16(values[0], other) : pack_bf16(other, values[1]);
      const int64_t row = tile.first_row() + 8 * i + 2 * lane_in_group() + group % 2;
      if (first >= tile.p.num_columns || row / kPanelWidth > last_panel) continue;
      const auto word = core_word(static_cast<uint32_t>(first + group - group % 2) / 2,
                                  static_cast<uint32_t>(row % kPanelWidth));
      tile.p.gated_out.panel(row / kPanelWidth)[word] = pair;
    }
  }

  // The bias of a column of one of two matrices; without one -0 stays.
  class Bias {
   public:
    PL_DEVICE Bias(const Params& p, int matrix, int64_t place)
        : is_present_(p.columns[matrix].bias != nullptr && place < p.num_columns),
          value_(is_present_ ? p.columns[matrix].bias[p.columns[matrix].first + place] : 0.0f) {}
    PL_DEVICE float add(float total) const { return is_present_ ? total + value_ : total; }

   private:
    bool is_present_;
    float value_;
  };
};

}  // namespace paceline::cuda
