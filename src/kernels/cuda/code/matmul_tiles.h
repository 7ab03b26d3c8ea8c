// Products of many rows with bfloat16 weights: tiles of 128 columns and 64 or 128 rows, both from
// panels, in stages of 32 inputs that are copied to shared memory while earlier ones are
// multiplied.
//
// A warp has 64 columns and 32 rows: for a step it loads 2 KB of weights and 1 KB of inputs in six
// instructions and issues 16 matrix instructions, so that per multiprocessor and step of 8 warps
// shared memory is busy for 192 cycles, and the matrix units for 208 (at 62 % of what wgmma
// reaches). From memory and the second-level cache a tile of 128 x 128 takes 8 KB a step: 20 bytes
// per cycle and multiprocessor. kStages - 1 stages in flight are 48 KB. Not measured.
//
// Shared memory: the 8 chunks of 16 bytes of a panel's pair stand at chunk ^ 2 (pair / 2 % 4). The
// 8 lanes of a quarter warp read chunks 2 q and 2 q + 1 of 4 pairs, which are then 8 different
// ones: no bank conflicts.
#pragma once

#include "kernels/cuda/code/pack_inputs.h"
#include "kernels/cuda/code/panel_products.h"

namespace paceline::cuda {

constexpr uint32_t kTileColumnPanels = 4;
constexpr uint32_t kTileStages = 4;
constexpr uint32_t kStagePairs = kStageInputs / 2;
constexpr uint32_t kPairChunks = 8;  // of 16 bytes

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

template <uint32_t kRowPanels>
struct TileShared {
  Words4 stages[kTileStages][kTileColumnPanels + kRowPanels][kStagePairs][kPairChunks];
  uint32_t is_last;
};

PL_DEVICE uint32_t swizzled(uint32_t pair, uint32_t chunk) { return chunk ^ 2 * (pair / 2 % 4); }

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
template <uint32_t kRowPanels, bool kGated>
struct Tile {
  const TileParams& p;
  TilePlace place;

  PL_DEVICE int64_t column_panel(uint32_t i) const {
    return kGated ? place.column_tile * (kTileColumnPanels / 2) + i / 2
                  : place.column_tile * kTileColumnPanels + i;
  }
  PL_DEVICE const PanelColumns& columns(uint32_t i) const { return p.columns[kGated ? i % 2 : 0]; }
  PL_DEVICE int64_t row_panel(uint32_t i) const { return place.row_tile * kRowPanels + i; }

  // Of panel `i` of the columns, then of the rows.
  PL_DEVICE const std::byte* panel(uint32_t i) const {
    if (i >= kTileColumnPanels) {
      const int64_t wanted = row_panel(i - kTileColumnPanels);
      const int64_t last = (p.num_rows - 1) / kPanelWidth;
      return reinterpret_cast<const std::byte*>(p.x.panel(wanted < last ? wanted : last));
    }
    const PanelColumns& from = columns(i);
    const int64_t last = (from.first % kPanelWidth + p.num_columns - 1) / kPanelWidth;
    return from.panel(column_panel(i) < last ? column_panel(i) : last);
  }
};

// A thread's copies of a stage: the same chunk and pair of every second panel, or of each.
template <uint32_t kRowPanels>
class TileCopies {
 public:
  using Shared = TileShared<kRowPanels>;
  static constexpr uint32_t kThreads = 2 * kRowPanels * kWarpLanes;
  static constexpr uint32_t kChunks = kStagePairs * kPairChunks;  // of a panel
  static constexpr uint32_t kPanelsAtOnce = kThreads / kChunks;
  static constexpr uint32_t kCopies = (kTileColumnPanels + kRowPanels) / kPanelsAtOnce;

  template <bool kGated>
  PL_DEVICE TileCopies(const Tile<kRowPanels, kGated>& tile, uint32_t begin, uint32_t end)
      : pair_(begin / 2 + own_pair()), end_pair_((end + 1) / 2) {
    const uint32_t chunk = thread_index() % kPairChunks;
    for (uint32_t i = 0; i < kCopies; ++i) {
      from_[i] = tile.panel(own_panel(i)) + int64_t{pair_} * kPairBytes + chunk * sizeof(Words4);
    }
  }

  // Begins those of the next stage, which stands at `stage`; none behind the last.
  PL_DEVICE void begin(Shared& shared, uint32_t stage) {
    const uint32_t chunk = swizzled(own_pair(), thread_index() % kPairChunks);
    if (pair_ - own_pair() < end_pair_) {
      for (uint32_t i = 0; i < kCopies; ++i) {
        copy_async(&shared.stages[stage][own_panel(i)][own_pair()][chunk], from_[i],
                   pair_ < end_pair_);
        from_[i] += kStagePairs * kPairBytes;
      }
    }
    pair_ += kStagePairs;
    commit_copies();
  }

 private:
  PL_DEVICE static uint32_t own_pair() { return thread_index() % kChunks / kPairChunks; }
  PL_DEVICE static uint32_t own_panel(uint32_t i) {
    return i * kPanelsAtOnce + thread_index() / kChunks;
  }

  uint32_t pair_;
  uint32_t end_pair_;
  const std::byte* from_[kCopies];
};

// Tiles along x of the grid; along z the segments where each has a block of its own. A warp has two
// panels of columns and one of rows.
template <uint32_t kRowPanels, bool kGated>
struct MatmulTiles {
  static constexpr std::string_view kName =
      kGated ? (kRowPanels == 2 ? "gated_64_rows" : "gated_128_rows")
             : (kRowPanels == 2 ? "matmul_64_rows" : "matmul_128_rows");
  static constexpr uint32_t kThreads = TileCopies<kRowPanels>::kThreads;
  using Params = TileParams;
  using Shared = TileShared<kRowPanels>;
  static constexpr int kRowsOfLane = 4;  // tiles of a panel of rows
  using Sums = PanelSumsOf<2, kRowsOfLane>;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const Tile<kRowPanels, kGated> tile{p, tile_place(p, block_index().x)};
    const uint32_t inputs = p.columns[0].weights.k, segment = block_index().z;
    const bool is_split = p.split.num_segments > 0;
    const uint32_t begin = is_split ? segment * uint32_t{kSegmentLength} : 0;
    const uint32_t left = inputs - begin;
    const uint32_t end =
        is_split && left > kSegmentLength ? begin + uint32_t{kSegmentLength} : inputs;
    Sums totals;
    multiply(tile, shared, begin, end, totals);
    if (is_split &&
        !add_segments(p.split, block_index().x, segment, kThreads, totals, shared.is_last)) {
      return;
    }
    write(tile, totals);
  }

 private:
  PL_DEVICE static uint32_t first_column_panel() { return warp_index() / kRowPanels * 2; }
  PL_DEVICE static uint32_t own_row_panel() { return warp_index() % kRowPanels; }

  // Whether the warp's tile has elements of the output.
  PL_DEVICE static bool is_present(const Tile<kRowPanels, kGated>& tile) {
    const uint32_t panel = first_column_panel();
    return tile.row_panel(own_row_panel()) * kPanelWidth < tile.p.num_rows &&
           tile.columns(panel).place(tile.column_panel(panel), 0) < tile.p.num_columns;
  }

  PL_DEVICE static void multiply(const Tile<kRowPanels, kGated>& tile, Shared& shared,
                                 uint32_t begin, uint32_t end, Sums& totals) {
    TileCopies<kRowPanels> copies(tile, begin, end);
    for (uint32_t i = 0; i + 1 < kTileStages; ++i) copies.begin(shared, i);
    const bool multiplies = is_present(tile);
    const uint32_t stages = (end - begin + kStageInputs - 1) / kStageInputs;
    totals.clear();
    Sums sums;
    sums.clear();
    for (uint32_t stage = 0; stage < stages; ++stage) {
      wait_copies<kTileStages - 2>();
      sync_threads();  // this stage is there, and the one before it has been read
      copies.begin(shared, (stage + kTileStages - 1) % kTileStages);
      if (!multiplies) continue;
      for (uint32_t step = 0; step < kStageSteps; ++step) {
        multiply_step(shared, stage % kTileStages, step, sums);
      }
      if ((stage + 1) % kStagesOfSegment > 0 && stage + 1 < stages) continue;
      totals.add(sums);
      sums.clear();
    }
  }

  PL_DEVICE static PanelStep load_step(const Shared& shared, uint32_t stage, uint32_t panel,
                                       uint32_t step) {
    const uint32_t pair = step * (kStepInputs / 2) + 2 * lane_in_group();
    const auto& pairs = shared.stages[stage][panel];
    return {load_as<Words4>(&pairs[pair][swizzled(pair, lane_group())]),
            load_as<Words4>(&pairs[pair + 1][swizzled(pair + 1, lane_group())])};
  }

  PL_DEVICE static void multiply_step(const Shared& shared, uint32_t stage, uint32_t step,
                                      Sums& sums) {
    const PanelStep rows = load_step(shared, stage, kTileColumnPanels + own_row_panel(), step);
    uint32_t inputs[kRowsOfLane][2];
    for (int i = 0; i < kRowsOfLane; ++i) {
      inputs[i][0] = rows.even.words[i];
      inputs[i][1] = rows.odd.words[i];
    }
    for (uint32_t i = 0; i < 2; ++i) {
      sums.of_panel[i].multiply(load_step(shared, stage, first_column_panel() + i, step), inputs);
    }
  }

  PL_DEVICE static void write(const Tile<kRowPanels, kGated>& tile, const Sums& totals) {
    if (!is_present(tile)) return;
    if constexpr (kGated) {
      write_gated(tile, totals);
    } else {
      PL_UNROLL
      for (uint32_t i = 0; i < 2; ++i) {
        const uint32_t panel = first_column_panel() + i;
        const PanelColumns& columns = tile.columns(panel);
        const int64_t place = columns.place(tile.column_panel(panel), 4 * lane_group());
        for_each_row<kRowsOfLane>([&](int row, int parity, int of_lane) {
          const int64_t index = tile.row_panel(own_row_panel()) * kPanelWidth + row;
          if (index >= tile.p.num_rows) return;
          write_columns(columns, place, tile.p.num_columns,
                        totals.of_panel[i].columns(parity, of_lane), tile.p.out.row(index));
        });
      }
    }
  }

  // Two pairs of columns of 8 rows, in chunks of 4 rows.
  PL_DEVICE static void write_gated(const Tile<kRowPanels, kGated>& tile, const Sums& totals) {
    const uint32_t panel = first_column_panel();
    const int64_t place = tile.columns(panel).place(tile.column_panel(panel), 4 * lane_group());
    uint32_t* const out = tile.p.gated_out.panel(tile.row_panel(own_row_panel()));
    PL_UNROLL
    for (int parity = 0; parity < 2; ++parity) {
      Words4 low, high;
      PL_UNROLL
      for (int i = 0; i < kRowsOfLane; ++i) {
        const Floats4 gates = totals.of_panel[0].columns(parity, i);
        const Floats4 ups = totals.of_panel[1].columns(parity, i);
        low.words[i] = gated_pair(tile.p, place, gates, ups, 0);
        high.words[i] = gated_pair(tile.p, place, gates, ups, 2);
      }
      const uint32_t row = kRowsOfLane * (2 * lane_in_group() + static_cast<uint32_t>(parity));
      if (place < tile.p.num_columns) store_as(out + place / 2 * kPanelWidth + row, low);
      if (place + 2 < tile.p.num_columns) store_as(out + (place / 2 + 1) * kPanelWidth + row, high);
    }
  }

  // Zero behind the last column.
  PL_DEVICE static uint32_t gated_pair(const Params& p, int64_t place, const Floats4& gates,
                                       const Floats4& ups, int first) {
    float values[2];
    PL_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int64_t at = place + first + i;
      if (at >= p.num_columns) {
        values[i] = 0.0f;
        continue;
      }
      values[i] = activate_gate(p.activation, p.columns[0].with_bias(gates.of[first + i], at),
                                p.columns[1].with_bias(ups.of[first + i], at));
    }
    return pack_bf16(values[0], values[1]);
  }
};

}  // namespace paceline::cuda
