// Products of many rows with bfloat16 weights: tiles of 128 columns and 128 rows, or 64 and 64,
// both from panels. One warp copies stages of 64 inputs to shared memory; the others, with 64
// columns and 32 rows each, multiply what has landed, at their own pace. A panel's stage is one run
// of bytes, and a lane's part of a step is 16 bytes beside those of the next lane: no bank
// conflicts.
//
// Measured on an H200 (2,048 rows, 2,048 x 16,384): 426 TFLOP/s of the 621 that mma.sync reaches on
// registers. A tile of 128 x 128 takes 42 bytes per cycle from the second-level cache at the full
// rate.
#pragma once

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

// Warps that multiply: kColumnWarps side by side, kRowWarps below one another.
template <uint32_t kColumnWarps, uint32_t kRowWarps>
struct TileShape {
  static constexpr uint32_t kColumnPanels = 2 * kColumnWarps;
  static constexpr uint32_t kRowPanels = kRowWarps;
  static constexpr uint32_t kPanels = kColumnPanels + kRowPanels;
  static constexpr uint32_t kMultipliers = kColumnWarps * kRowWarps;
  static constexpr uint32_t kStages = kMultipliers > 2 ? 4 : 3;
};

template <class Shape>
struct TileShared {
  Words4 stages[Shape::kStages][Shape::kPanels][kStageSteps][kStepWords / 4];
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
  PL_DEVICE int64_t row_panel(uint32_t i) const { return place.row_tile * Shape::kRowPanels + i; }

  // Of panel `i` of the columns, then of the rows.
  PL_DEVICE const std::byte* panel(uint32_t i) const {
    if (i >= Shape::kColumnPanels) {
      const int64_t wanted = row_panel(i - Shape::kColumnPanels);
      const int64_t last = (p.num_rows - 1) / kPanelWidth;
      return reinterpret_cast<const std::byte*>(p.x.panel(wanted < last ? wanted : last));
    }
    const PanelColumns& from = columns(i);
    const int64_t last = (from.first % kPanelWidth + p.num_columns - 1) / kPanelWidth;
    return from.panel(column_panel(i) < last ? column_panel(i) : last);
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

// Tiles along x of the grid; along z the segments where each has a block of its own. A warp
// multiplies two panels of columns and one of rows.
template <uint32_t kColumnWarps, uint32_t kRowWarps, bool kGated>
struct MatmulTiles {
  using Shape = TileShape<kColumnWarps, kRowWarps>;
  static constexpr std::string_view kName =
      kGated ? (kRowWarps == 2 ? "gated_64_rows" : "gated_128_rows")
             : (kRowWarps == 2 ? "matmul_64_rows" : "matmul_128_rows");
  static constexpr uint32_t kMultiplying = Shape::kMultipliers * kWarpLanes;  // threads
  static constexpr uint32_t kThreads = kMultiplying + kWarpLanes;
  static constexpr bool kBeginsLate = true;  // blocks fill a multiprocessor's shared memory
  using Params = TileParams;
  using Shared = TileShared<Shape>;
  using Place = RingPlace<Shape::kStages>;
  static constexpr int kRowsOfLane = 4;  // tiles of a panel of rows
  using Sums = PanelSumsOf<2, kRowsOfLane>;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const Tile<Shape, kGated> tile{p, tile_place(p, block_index().x)};
    const auto all_steps = static_cast<uint32_t>(padded_steps(p.columns[0].weights.k));
    const uint32_t segment = block_index().z;
    const bool is_split = p.split.num_segments > 0;
    const uint32_t begin = is_split ? segment * kStepsOfSegment : 0, left = all_steps - begin;
    const uint32_t steps = is_split && left > kStepsOfSegment ? kStepsOfSegment : left;
    make_barriers(shared);
    Sums totals;
    totals.clear();
    if (warp_index() == Shape::kMultipliers) {
      copy_stages(tile, shared, begin, steps);
    } else {
      multiply_stages(tile, shared, steps, totals);
    }
    if (is_split &&
        !add_segments(p.split, block_index().x, segment, kMultiplying, totals, shared.is_last)) {
      return;
    }
    if (warp_index() < Shape::kMultipliers) write(tile, totals);
  }

 private:
  PL_DEVICE static uint32_t first_column_panel() { return warp_index() / kRowWarps * 2; }
  PL_DEVICE static uint32_t own_row_panel() { return warp_index() % kRowWarps; }

  // Whether the warp's tile has elements of the output.
  PL_DEVICE static bool is_present(const Tile<Shape, kGated>& tile) {
    const uint32_t panel = first_column_panel();
    return tile.row_panel(own_row_panel()) * kPanelWidth < tile.p.num_rows &&
           tile.columns(panel).place(tile.column_panel(panel), 0) < tile.p.num_columns;
  }

  PL_DEVICE static void make_barriers(Shared& shared) {
    if (thread_index() == 0) {
      for (uint32_t i = 0; i < Shape::kStages; ++i) {
        init_barrier(shared.landed[i], kCopyArrivals);
        init_barrier(shared.read[i], Shape::kMultipliers);
      }
    }
    sync_threads();
  }

  PL_DEVICE static void copy_stages(const Tile<Shape, kGated>& tile, Shared& shared, uint32_t begin,
                                    uint32_t steps) {
    const std::byte* from[Shape::kPanels];
    PL_UNROLL
    for (uint32_t i = 0; i < Shape::kPanels; ++i) {
      from[i] = tile.panel(i) + int64_t{begin} * kStepBytes;
    }
    Place place;
    for (uint32_t step = 0; step < steps; step += kStageSteps, place.advance()) {
      constexpr uint32_t kBytes = kStageSteps * kStepBytes;
      wait_barrier(shared.read[place.slot], place.parity ^ 1);  // the first round waits for nothing
      begin_bulk(shared.landed[place.slot], Shape::kPanels * kBytes);
      PL_UNROLL
      for (uint32_t i = 0; i < Shape::kPanels; ++i) {
        copy_bulk(&shared.stages[place.slot][i], from[i], kBytes, shared.landed[place.slot]);
        from[i] += kBytes;
      }
      end_bulk(shared.landed[place.slot]);
    }
  }

  PL_DEVICE static void multiply_stages(const Tile<Shape, kGated>& tile, Shared& shared,
                                        uint32_t steps, Sums& totals) {
    if (!is_present(tile)) return pass_stages(shared, steps);
    Sums sums;
    sums.clear();
    Place place;
    for (uint32_t step = kStageSteps; step <= steps; step += kStageSteps, place.advance()) {
      wait_barrier(shared.landed[place.slot], place.parity);
      multiply_stage(shared, place.slot, sums);
      arrive_as_warp(shared.read[place.slot]);
      if (step % kStepsOfSegment > 0 && step < steps) continue;
      totals.add(sums);
      sums.clear();
    }
  }

  PL_DEVICE static void pass_stages(Shared& shared, uint32_t steps) {
    Place place;
    for (uint32_t step = 0; step < steps; step += kStageSteps, place.advance()) {
      wait_barrier(shared.landed[place.slot], place.parity);
      arrive_as_warp(shared.read[place.slot]);
    }
  }

  // The operands of a step.
  struct Operands {
    PanelStep columns[2];
    PanelStep rows;

    PL_DEVICE static Operands load(const Shared& shared, uint32_t slot, uint32_t step) {
      const auto& panels = shared.stages[slot];
      return {{PanelStep::load(panels[first_column_panel()][step]),
               PanelStep::load(panels[first_column_panel() + 1][step])},
              PanelStep::load(panels[Shape::kColumnPanels + own_row_panel()][step])};
    }
    PL_DEVICE void multiply(Sums& sums) const {
      uint32_t inputs[kRowsOfLane][2];
      PL_UNROLL
      for (int i = 0; i < kRowsOfLane; ++i) {
        inputs[i][0] = rows.half[i / 2].words[i % 2 * 2];
        inputs[i][1] = rows.half[i / 2].words[i % 2 * 2 + 1];
      }
      PL_UNROLL
      for (int i = 0; i < 2; ++i) sums.of_panel[i].multiply(columns[i], inputs);
    }
  };

  // Loads each step's operands while the one before is multiplied, where registers are left.
  PL_DEVICE static void multiply_stage(const Shared& shared, uint32_t slot, Sums& sums) {
    if constexpr (!kHasBulkCopies) {
      PL_ROLLED
      for (uint32_t step = 0; step < kStageSteps; ++step) {
        Operands::load(shared, slot, step).multiply(sums);
      }
      return;
    }
    Operands operands = Operands::load(shared, slot, 0);
    PL_UNROLL
    for (uint32_t step = 1; step < kStageSteps; ++step) {
      const Operands next = Operands::load(shared, slot, step);
      operands.multiply(sums);
      operands = next;
    }
    operands.multiply(sums);
  }

  PL_DEVICE static void write(const Tile<Shape, kGated>& tile, const Sums& totals) {
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

  // The inputs of the next product: a lane has 4 of them, of 8 rows.
  PL_DEVICE static void write_gated(const Tile<Shape, kGated>& tile, const Sums& totals) {
    const uint32_t panel = first_column_panel();
    const int64_t place = tile.columns(panel).place(tile.column_panel(panel), 4 * lane_group());
    if (place >= tile.p.num_columns) return;
    const Floats4 gate_bias = bias_of(tile.p, 0, place), up_bias = bias_of(tile.p, 1, place);
    uint32_t* const out = tile.p.gated_out.panel(tile.row_panel(own_row_panel()));
    const auto pair = static_cast<uint32_t>(place / 2);
    with_activation(tile.p.activation, [&]<ActivationKind kKind>() {
      PL_UNROLL
      for (int parity = 0; parity < 2; ++parity) {
        const uint32_t row = kRowsOfLane * (2 * lane_in_group() + static_cast<uint32_t>(parity));
        PL_UNROLL
        for (int half = 0; half < 2; ++half) {
          Words4 words;
          PL_UNROLL
          for (int i = 0; i < 2; ++i) {
            const Floats4 gates = totals.of_panel[0].columns(parity, 2 * half + i);
            const Floats4 ups = totals.of_panel[1].columns(parity, 2 * half + i);
            float values[4];
            PL_UNROLL
            for (int k = 0; k < 4; ++k) {
              const float gate = with_bias(tile.p, 0, gates.of[k], gate_bias.of[k]);
              const float value =
                  activate_gate(kKind, gate, with_bias(tile.p, 1, ups.of[k], up_bias.of[k]));
              values[k] = place + k < tile.p.num_columns ? value : 0.0f;  // behind the last column
            }
            words.words[2 * i] = pack_bf16(values[0], values[1]);
            words.words[2 * i + 1] = pack_bf16(values[2], values[3]);
          }
          store_as(out + fragment_word(pair, row + 2 * static_cast<uint32_t>(half)), words);
        }
      }
    });
  }

  // The bias of 4 columns; zero behind the last column.
  PL_DEVICE static Floats4 bias_of(const Params& p, int matrix, int64_t place) {
    const PanelColumns& columns = p.columns[matrix];
    Floats4 bias{};
    if (columns.bias == nullptr) return bias;
    PL_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (place + i < p.num_columns) bias.of[i] = columns.bias[columns.first + place + i];
    }
    return bias;
  }
  // Without a bias -0 stays.
  PL_DEVICE static float with_bias(const Params& p, int matrix, float total, float bias) {
    return p.columns[matrix].bias != nullptr ? total + bias : total;
  }
};

}  // namespace paceline::cuda
