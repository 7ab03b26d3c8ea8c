// Products of many rows with bfloat16 weights: tiles of columns and rows, both from panels, which
// warpgroups multiply. One thread copies stages of 64 inputs to shared memory, into a ring that
// runs on from tile to tile; the warpgroups have the sums of a segment of K, and of all before it,
// in registers.
#pragma once

#include "kernels/cuda/code/kernel_name.h"
#include "kernels/cuda/code/pack_inputs.h"
#include "kernels/cuda/code/panel_products.h"
#include "kernels/cuda/code/ring_place.h"

namespace paceline::cuda {

struct TileParams {
  // A gated product has two matrices, the gate first. Both have the same number of stages and
  // panels, and their first columns have the same place in a panel.
  PanelColumns columns[2];
  int64_t second_matrix = 0;  // bytes from the gate's first column to the other's
  int64_t num_columns = 0;    // of each matrix
  InputPanels x;
  int64_t num_rows = 0;
  uint32_t num_row_tiles = 0;
  uint32_t num_column_tiles = 0;
  Rows out;
  ActivationKind activation = ActivationKind::silu;
  InputPanels gated_out;  // of a gated product, instead of out
  SplitSums split;
};

// kGroups warpgroups have 64 columns each and all rows. Those of a gated product have 64 columns of
// both matrices, so that a thread has both sums of a column, and share the rows.
template <uint32_t kGroups, uint32_t kRows, bool kGated>
struct TileShape {
  static constexpr uint32_t kMatrices = kGated ? 2 : 1;
  static constexpr uint32_t kColumns = kGated ? kGroupRows : kGroups * kGroupRows;  // of a matrix
  static constexpr uint32_t kRowsOfGroup = kGated ? kRows / kGroups : kRows;
  static constexpr uint32_t kMatrixBytes = kColumns / kCoreColumns * kCoreGroupBytes;
  static constexpr uint32_t kInputBytes = kRows / kCoreColumns * kCoreGroupBytes;
  static constexpr uint32_t kMultiplying = kGroups * kGroupThreads;  // threads
  static constexpr uint32_t kMultipliers = kMultiplying / kWarpLanes;
  static constexpr uint32_t kSums = kMatrices * kRowsOfGroup / 2;  // of a thread and a segment
  // On a multiprocessor of Hopper, by their registers and shared memory.
  static constexpr uint32_t kBlocksAtOnce = kGroups == 1 ? 3 : kGated || kRows > 64 ? 1 : 2;
  static constexpr uint32_t kBytesOfBlock = (225 * 1024) / kBlocksAtOnce - 1024;
  static constexpr uint32_t kMostStages = kBytesOfBlock / (kMatrices * kMatrixBytes + kInputBytes);
  static constexpr uint32_t kStages = kMostStages < 8 ? kMostStages : 8;
};

template <class Shape>
struct TileShared {
  alignas(128) std::byte weights[Shape::kStages][Shape::kMatrices][Shape::kMatrixBytes];
  alignas(128) std::byte inputs[Shape::kStages][Shape::kInputBytes];
  BarrierState landed[Shape::kStages];
  BarrierState read[Shape::kStages];
  uint32_t is_last;
};

// Blocks that run at the same time share rows and columns: tiles are taken in bands of 8 row tiles,
// column by column.
struct TilePlace {
  uint32_t row_tile;
  uint32_t column_tile;
};
PL_DEVICE TilePlace tile_place(const TileParams& p, uint32_t index) {
  constexpr uint32_t kBand = 8;
  const uint32_t first = index / (kBand * p.num_column_tiles) * kBand;
  const uint32_t left = p.num_row_tiles - first, height = left < kBand ? left : kBand;
  const uint32_t in_band = index - first * p.num_column_tiles;
  return {first + in_band % height, in_band / height};
}

// A tile's columns and rows, as far as there are panels of them. What is copied ends there; behind
// it products are of anything, and nothing is written.
template <uint32_t kColumns, uint32_t kRows>
struct Tile {
  const TileParams& p;
  TilePlace place;

  PL_DEVICE int64_t first_panel() const {
    return int64_t{place.column_tile} * (kColumns / kPanelWidth);
  }
  PL_DEVICE int64_t first_row() const { return int64_t{place.row_tile} * kRows; }

  // Groups of 8 columns or rows.
  PL_DEVICE uint32_t column_groups() const {
    const int64_t end = (p.columns[0].first % kPanelWidth + p.num_columns - 1) / kPanelWidth + 1;
    return groups_up_to((end - first_panel()) * kPanelGroups, kColumns / kCoreColumns);
  }
  PL_DEVICE uint32_t row_groups() const {
    const int64_t end = (p.num_rows - 1) / kPanelWidth + 1;
    return groups_up_to(end * kPanelGroups - first_row() / kCoreColumns, kRows / kCoreColumns);
  }

 private:
  PL_DEVICE static uint32_t groups_up_to(int64_t left, uint32_t most) {
    return left < most ? static_cast<uint32_t>(left) : most;
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
  using Shape = TileShape<kGroups, kRows, kGated>;
  static constexpr KernelName kFullName{kGated         ? "gated_tile_"
                                        : kGroups == 1 ? "matmul_64_columns_"
                                                       : "matmul_128_columns_",
                                        rows_suffix(kRows)};
  static constexpr std::string_view kName = kFullName.text();
  static constexpr uint32_t kMatrices = Shape::kMatrices;
  static constexpr uint32_t kMultiplying = Shape::kMultiplying;
  static constexpr uint32_t kBlocksAtOnce = Shape::kBlocksAtOnce;
  // Warpgroups whose sums need more registers than a thread has by itself take those of the warp
  // that copies, which is then one of a group.
  static constexpr bool kTakesRegisters = kRows >= 128 || (kGroups == 2 && !kGated);
  static constexpr uint32_t kThreads =
      kMultiplying + (kTakesRegisters ? kGroupThreads : uint32_t{kWarpLanes});
  // A block has no more than its threads have when it begins: it would wait for ever.
  static constexpr uint32_t kGivenRegisters = 24;
  static constexpr uint32_t kTakenRegisters = kBlocksAtOnce == 1 ? 240 : 104;
  static constexpr uint32_t kFirstRegisters = 65536 / (kThreads * kBlocksAtOnce) / 8 * 8;
  static_assert(!kTakesRegisters ||
                kMultiplying * kTakenRegisters + kGroupThreads * kGivenRegisters <=
                    kThreads * kFirstRegisters);
  static constexpr bool kSplits = kGroups == 1;  // segments of K may have blocks of their own
  static constexpr bool kBeginsLate = true;      // blocks fill a multiprocessor's shared memory
  using Params = TileParams;
  using Shared = TileShared<Shape>;
  using Sums = TileSums<Shape::kSums>;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    if constexpr (kTakesRegisters && !kCanTakeRegisters) return;
    make_barriers(shared);
    Sums totals;
    if (warp_index() >= Shape::kMultipliers) {
      if constexpr (kTakesRegisters) give_registers<kGivenRegisters>();
      // One lane's loop: no branch and meeting of the warp for each copy.
      const bool copies = !kHasBulkCopies || lane_index() == 0;
      if (warp_index() == Shape::kMultipliers && copies) copy_tiles(p, shared);
    } else {
      if constexpr (kTakesRegisters) take_registers<kTakenRegisters>();
      multiply_tiles(p, shared, totals);
    }
    if constexpr (kSplits) {
      if (p.split.num_segments == 0) return;
      sync_warp();  // the lane that copied is behind the others of its warp
      if (add_segments(p.split, block_index().x, block_index().z, kMultiplying, totals,
                       shared.is_last) &&
          warp_index() < Shape::kMultipliers) {
        write({p, tile_place(p, block_index().x)}, totals);
      }
    }
  }

 private:
  using OwnTile = Tile<Shape::kColumns, kRows>;
  using Place = RingPlace<Shape::kStages>;
  static constexpr uint32_t kStagesOfSegment = kStepsOfSegment / kStageSteps;
  static constexpr uint32_t kRowsOfGroup = Shape::kRowsOfGroup;
  static constexpr int kOfMatrix = kRowsOfGroup / 2;  // sums of a thread

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
    const uint32_t tiles = p.num_row_tiles * p.num_column_tiles;
    Place place;
    for (uint32_t index = block_index().x; index < tiles; index += grid_size().x) {
      copy_stages({p, tile_place(p, index)}, shared, range, place);
    }
  }
  PL_DEVICE static void multiply_tiles(const Params& p, Shared& shared, Sums& totals) {
    const Range range = own_range(p);
    const uint32_t tiles = p.num_row_tiles * p.num_column_tiles;
    Place place;
    for (uint32_t index = block_index().x; index < tiles; index += grid_size().x) {
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
    const Params& p = tile.p;
    const uint32_t matrix_bytes = tile.column_groups() * kCoreGroupBytes;
    const uint32_t input_bytes = tile.row_groups() * kCoreGroupBytes;
    const int64_t input_stage_bytes = int64_t{p.x.panels} * kStageBytes;
    const int64_t stage_bytes = p.columns[0].weights.stage_bytes;
    const std::byte* weights = p.columns[0].panel(tile.first_panel()) + range.begin * stage_bytes;
    const std::byte* inputs = reinterpret_cast<const std::byte*>(p.x.first) +
                              tile.first_row() / kCoreColumns * kCoreGroupBytes +
                              range.begin * input_stage_bytes;
    for (uint32_t left = range.count; left > 0; --left, place.advance()) {
      BarrierState& landed = shared.landed[place.slot];
      wait_barrier(shared.read[place.slot], place.parity ^ 1);  // the first round waits for nothing
      begin_bulk(landed, kMatrices * matrix_bytes + input_bytes);
      copy_bulk(shared.weights[place.slot][0], weights, matrix_bytes, landed);
      if constexpr (kGated) {
        copy_bulk(shared.weights[place.slot][1], weights + p.second_matrix, matrix_bytes, landed);
      }
      copy_bulk(shared.inputs[place.slot], inputs, input_bytes, landed);
      weights += stage_bytes;
      inputs += input_stage_bytes;
      end_bulk(landed);
    }
  }

  // The totals of all segments of the range.
  PL_DEVICE static void multiply_stages(Shared& shared, Range range, Place& place, Sums& totals) {
    float sums[kMatrices][kOfMatrix];
    for (uint32_t begin = 0; begin < range.count; begin += kStagesOfSegment) {
      const uint32_t left = range.count - begin;
      const uint32_t count = left < kStagesOfSegment ? left : kStagesOfSegment;
      uint32_t before = 0;
      for (uint32_t stage = 0; stage < count; ++stage, place.advance()) {
        wait_barrier(shared.landed[place.slot], place.parity);
        multiply_stage(shared, place.slot, stage > 0, sums);
        if (stage > 0) {
          wait_sums<1>(sums);
          arrive_as_warp(shared.read[before]);
        }
        before = place.slot;
      }
      wait_sums<0>(sums);
      arrive_as_warp(shared.read[before]);
      PL_UNROLL
      for (int i = 0; i < static_cast<int>(Shape::kSums); ++i) {
        const float sum = sums[i / kOfMatrix][i % kOfMatrix];
        totals.of[i] = begin == 0 ? sum : totals.of[i] + sum;
      }
    }
  }

  template <int kPending>
  PL_DEVICE static void wait_sums(float (&sums)[kMatrices][kOfMatrix]) {
    PL_UNROLL
    for (auto& of_matrix : sums) wait_products<kPending>(of_matrix);
  }

  PL_DEVICE static void multiply_stage(const Shared& shared, uint32_t slot, bool adds,
                                       float (&sums)[kMatrices][kOfMatrix]) {
    constexpr uint32_t kOwnColumns = kGated ? 0 : kGroupRows / kCoreColumns * kCoreGroupBytes;
    constexpr uint32_t kOwnRows = kGated ? kRowsOfGroup / kCoreColumns * kCoreGroupBytes : 0;
    const std::byte* const inputs = shared.inputs[slot] + own_group() * kOwnRows;
    begin_products();
    PL_UNROLL
    for (uint32_t step = 0; step < kStageSteps; ++step) {
      const uint32_t skipped = step * 2 * kCoreBytes;
      PL_UNROLL
      for (uint32_t i = 0; i < kMatrices; ++i) {
        const std::byte* const weights = shared.weights[slot][i] + own_group() * kOwnColumns;
        multiply_group<kRowsOfGroup>(
            sums[i], CoreMatrices{weights + skipped, kCoreBytes, kCoreGroupBytes},
            CoreMatrices{inputs + skipped, kCoreBytes, kCoreGroupBytes}, adds || step > 0);
      }
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

  // A thread has columns g and g + 8 of its warp's 16.
  PL_DEVICE static uint32_t column_of(uint32_t half) {
    return (warp_index() % 4 * 2 + half) * kCoreColumns + lane_group();
  }
  // Row `i` of the thread's, and which of a matrix's sums it is for a half.
  PL_DEVICE static uint32_t row_of(uint32_t i) { return i / 2 * 8 + 2 * lane_in_group() + i % 2; }
  PL_DEVICE static uint32_t sum_of(uint32_t i, uint32_t half) {
    return i / 2 * 4 + half * 2 + i % 2;
  }

  PL_DEVICE static void write_plain(const OwnTile& tile, const Sums& totals) {
    const PanelColumns& columns = tile.p.columns[0];
    PL_UNROLL
    for (uint32_t half = 0; half < 2; ++half) {
      const int64_t place =
          columns.place(tile.first_panel(), own_group() * kGroupRows + column_of(half));
      if (place < 0 || place >= tile.p.num_columns) continue;
      const float bias = bias_of(tile.p, 0, place);
      PL_UNROLL
      for (uint32_t i = 0; i < kRows / 4; ++i) {
        const int64_t row = tile.first_row() + row_of(i);
        if (row < tile.p.num_rows) {
          tile.p.out.row(row)[place] = with_bias(tile.p, 0, totals.of[sum_of(i, half)], bias);
        }
      }
    }
  }

  // The inputs of the next product. Lanes g and g ^ 1 exchange a row, so that each has a pair of
  // inputs.
  template <ActivationKind kKind>
  PL_DEVICE static void write_gated(const OwnTile& tile, const Sums& totals) {
    const bool is_even = lane_group() % 2 == 0;
    const auto first_row = static_cast<uint32_t>(tile.first_row());
    const auto all_rows =
        static_cast<uint32_t>((tile.p.num_rows + kPanelWidth - 1) / kPanelWidth * kPanelWidth);
    PL_UNROLL
    for (uint32_t half = 0; half < 2; ++half) {
      const int64_t place = tile.p.columns[0].place(tile.first_panel(), column_of(half));
      const float gate_bias = bias_of(tile.p, 0, place), up_bias = bias_of(tile.p, 1, place);
      const auto pair = static_cast<uint32_t>(place) / 2;
      uint32_t* const out = tile.p.gated_out.stage(0, pair / kStagePairs);
      const uint32_t end_row = place - lane_group() < tile.p.num_columns ? all_rows : 0;
      PL_UNROLL
      for (uint32_t i = 0; i < kRowsOfGroup / 4; i += 2) {
        float values[2];
        PL_UNROLL
        for (uint32_t j = 0; j < 2; ++j) {
          const uint32_t sum = sum_of(i + j, half);
          const float gate = with_bias(tile.p, 0, totals.of[sum], gate_bias);
          const float up = with_bias(tile.p, 1, totals.of[kOfMatrix + sum], up_bias);
          const float value = activate_gate(kKind, gate, up);
          values[j] = place < tile.p.num_columns ? value : 0.0f;  // behind the last column
        }
        const float other = shuffle_xor(is_even ? values[1] : values[0], 4);
        const uint32_t word = is_even ? pack_bf16(values[0], other) : pack_bf16(other, values[1]);
        const uint32_t row = first_row + own_group() * kRowsOfGroup + row_of(i) + lane_group() % 2;
        if (row < end_row)
          store_as(
              out + row / kPanelWidth * kStageWords + core_word(pair, row % uint32_t{kPanelWidth}),
              word);
      }
    }
  }

  // The bias of a column of one of two matrices, and a sum with it; without one -0 stays.
  PL_DEVICE static float bias_of(const Params& p, int matrix, int64_t place) {
    const float* const bias = p.columns[matrix].bias;
    return bias != nullptr && place < p.num_columns ? bias[p.columns[matrix].first + place] : 0.0f;
  }
  PL_DEVICE static float with_bias(const Params& p, int matrix, float total, float bias) {
    return p.columns[matrix].bias != nullptr ? total + bias : total;
  }
};

}  // namespace paceline::cuda
