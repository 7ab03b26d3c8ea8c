// Products of more than 8 rows with quantised weights: a warp has a panel of 32 columns (of a gated
// product: 16 of each matrix) and 32 or 64 rows, a block four panels. The block's rounded inputs
// and each warp's codes are copied to a ring of stages of 64 inputs; a lane makes codes into
// operands in registers, each for all rows.
#pragma once

#include "kernels/cuda/code/code_inputs.h"
#include "kernels/cuda/code/code_operands.h"
#include "kernels/cuda/code/kernel_name.h"

namespace paceline::cuda {

struct CodesParams {
  // A gated product has two matrices, the gate first. Both have codes of the same width, and their
  // first columns have the same place in a panel.
  GroupColumns columns[2];
  int64_t num_columns = 0;
  CodeInputs x;
  int64_t num_rows = 0;
  uint32_t num_row_blocks = 0;
  Rows out;
  ActivationKind activation = ActivationKind::silu;
  CodeInputs gated_out;  // of a gated product, instead of out
  SplitSums split;
};

constexpr uint32_t kCodeWarps = 4;
constexpr uint32_t kCodeStages = 4;

template <uint32_t kRowTiles>
struct CodesShared {
  static constexpr uint32_t kMostCodeBytes = 2 * kVectorBytes;
  struct Weights {
    std::byte codes[kMostCodeBytes];
    std::byte numbers[kUnitNumberBytes];
  };
  struct alignas(16) Stage {
    uint32_t inputs[kRowTiles][kTileWords];
    Weights weights[kCodeWarps][2];
  };
  Stage stages[kCodeStages];
  uint32_t is_last;
};

// A warp's sums of two tiles of columns and kRowTiles tiles of rows.
template <uint32_t kRowTiles>
struct CodeSums {
  static constexpr uint32_t kPieces = 2 * kRowTiles;
  float of[2][kRowTiles][4];

  template <class Body>
  PL_DEVICE void for_each(Body&& body) {
    PL_UNROLL
    for (uint32_t half = 0; half < 2; ++half) {
      PL_UNROLL
      for (uint32_t tile = 0; tile < kRowTiles; ++tile) {
        body(of[half][tile], half * kRowTiles + tile);
      }
    }
  }
  PL_DEVICE void clear() {
    for_each([](float(&sums)[4], uint32_t) {
      PL_UNROLL
      for (float& sum : sums) sum = 0.0f;
    });
  }
  PL_DEVICE void add(const CodeSums& other) {
    for_each([&](float(&sums)[4], uint32_t piece) {
      PL_UNROLL
      for (int i = 0; i < 4; ++i) {
        sums[i] = sums[i] + other.of[piece / kRowTiles][piece % kRowTiles][i];
      }
    });
  }
  // A thread's pieces of 4 sums, `threads` apart.
  PL_DEVICE void save(Floats4* to, uint32_t threads) {
    for_each([&](float(&sums)[4], uint32_t piece) {
      store_as(to + piece * threads + thread_index(),
               Floats4{{sums[0], sums[1], sums[2], sums[3]}});
    });
  }
  PL_DEVICE void add_saved(const Floats4* from, uint32_t threads) {
    for_each([&](float(&sums)[4], uint32_t piece) {
      const auto saved = load_as<Floats4>(from + piece * threads + thread_index());
      PL_UNROLL
      for (int i = 0; i < 4; ++i) sums[i] = sums[i] + saved.of[i];
    });
  }
};

// Blocks of rows and columns along x of the grid, those of the same columns beside each other;
// along z the segments where each has a block of its own.
template <uint32_t kRowTiles, bool kGated>
struct MatmulCodes {
  static constexpr KernelName kFullName{kGated ? "gated_" : "",
                                        kRowTiles == 4 ? "codes_32_rows" : "codes_64_rows"};
  static constexpr std::string_view kName = kFullName.text();
  static constexpr uint32_t kThreads = kCodeWarps * kWarpLanes;
  static constexpr bool kWaitsItself = true;
  using Params = CodesParams;
  using Shared = CodesShared<kRowTiles>;
  using Stage = typename Shared::Stage;
  using Sums = CodeSums<kRowTiles>;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const CodeTile tiles[2] = {own_tile(p, 0), own_tile(p, 1)};
    const uint32_t all = (tiles[0].panels().k + kUnitInputs - 1) / kUnitInputs;
    const bool is_split = p.split.num_segments > 0;
    const uint32_t begin = is_split ? block_index().z * kSegmentUnits : 0, left = all - begin;
    const uint32_t end = begin + (is_split && left > kSegmentUnits ? kSegmentUnits : left);
    const CodeForm forms[2] = {tiles[0].form(), tiles[1].form()};
    with_units<kUnitInputs>(tiles[0].panels(), [&]<class Codes>() {
      Copies<Codes> copies(tiles, begin, end);
      PL_ROLLED
      for (uint32_t i = 0; i + 1 < kCodeStages; ++i) copies.copy(shared.stages[i]);
    });
    wait_for_earlier_kernels();  // weights are there, inputs may not be
    PL_ROLLED
    for (uint32_t i = 0; i + 1 < kCodeStages; ++i) {
      copy_inputs(p, shared.stages[i], begin + i, begin + i < end);
      commit_copies();
    }
    Sums totals;
    totals.clear();
    with_codes<kUnitInputs>(
        tiles[0].panels(), forms[0] < forms[1] ? forms[0] : forms[1],
        [&]<class Codes>() { multiply_units<Codes>(p, shared, tiles, begin, end, totals); });
    begin_later_kernels();
    if (is_split && !add_segments(p.split, block_index().x, block_index().z, kThreads, totals,
                                  shared.is_last)) {
      return;
    }
    write(p, shared, totals);
  }

 private:
  static constexpr uint32_t kSegmentUnits = uint32_t{kSegmentLength} / kUnitInputs;

  PL_DEVICE static int64_t first_row_tile(const Params& p) {
    return int64_t{block_index().x % p.num_row_blocks} * kRowTiles;
  }
  // The warp's panel, counted from that of the first column; of a gated product, its tile.
  PL_DEVICE static int64_t own_place(const Params& p) {
    return int64_t{block_index().x / p.num_row_blocks} * kCodeWarps + warp_index();
  }
  // Those of the last panel where the block has more than there are.
  PL_DEVICE static CodeTile own_tile(const Params& p, uint32_t half) {
    const GroupColumns& columns = p.columns[kGated ? half : 0];
    const int64_t last_panel = (columns.first % kPanelWidth + p.num_columns - 1) / kPanelWidth;
    const int64_t wanted = kGated ? own_place(p) : 2 * own_place(p) + half;
    const int64_t last = 2 * last_panel + (kGated ? 1 : half);
    return CodeTile(columns, wanted < last ? wanted : last);
  }

  // Of the warp's two tiles.
  template <class Codes>
  struct Copies {
    static_assert(Codes::kInputs == kUnitInputs);
    UnitCopies<kUnitInputs, Codes::kVectors, Codes::kIsWhole> of[2];

    PL_DEVICE Copies(const CodeTile (&tiles)[2], uint32_t begin, uint32_t end)
        : of{{tiles[0], begin * kUnitInputs, end * kUnitInputs},
             {tiles[1], begin * kUnitInputs, end * kUnitInputs}} {}

    PL_DEVICE void copy(Stage& stage) {
      PL_UNROLL
      for (uint32_t half = 0; half < 2; ++half) {
        auto& to = stage.weights[warp_index()][half];
        of[half].copy(to.codes, to.numbers);
      }
    }
  };

  PL_DEVICE static void copy_inputs(const Params& p, Stage& stage, uint32_t unit, bool is_present) {
    const uint32_t* const from = p.x.unit(first_row_tile(p), unit);
    PL_UNROLL
    for (uint32_t i = 0; i < kRowTiles * kTileWords; i += kThreads * 4) {
      copy_async(&stage.inputs[0][0] + i + thread_index() * 4, from + i + thread_index() * 4,
                 is_present);
    }
  }

  template <class Codes>
  PL_DEVICE static void multiply_units(const Params& p, Shared& shared, const CodeTile (&tiles)[2],
                                       uint32_t begin, uint32_t end, Sums& totals) {
    Copies<Codes> copies(tiles, begin + kCodeStages - 1, end);
    Sums sums;
    sums.clear();
    PL_ROLLED
    for (uint32_t unit = begin; unit < end; ++unit) {
      wait_copies<kCodeStages - 2>();
      sync_threads();  // the stage has landed, and the one before it has been read
      const uint32_t next = unit + kCodeStages - 1;
      Stage& free_stage = shared.stages[(next - begin) % kCodeStages];
      copies.copy(free_stage);
      copy_inputs(p, free_stage, next, next < end);
      commit_copies();
      const Stage& stage = shared.stages[(unit - begin) % kCodeStages];
      multiply_unit<Codes>(tiles, stage, unit * kUnitInputs, sums);
      if ((unit + 1) % kSegmentUnits == 0 || unit + 1 == end) {
        totals.add(sums);
        sums.clear();
      }
    }
    wait_copies();
  }

  template <class Codes>
  PL_DEVICE static void multiply_unit(const CodeTile (&tiles)[2], const Stage& stage, uint32_t k,
                                      Sums& sums) {
    constexpr uint32_t kStepsOfGroup = kUnitSteps / Codes::kGroups;
    const auto& weights = stage.weights[warp_index()];
    typename Codes::Loaded loaded[2];
    PL_UNROLL
    for (uint32_t half = 0; half < 2; ++half) {
      loaded[half] = Codes::load(tiles[half].panels(), weights[half].codes);
    }
    typename Codes::Affine affine[2];
    Words4 pairs[kRowTiles];
    PL_UNROLL
    for (uint32_t step = 0; step < kUnitSteps; ++step) {
      if (step % kPairSteps == 0) {
        PL_UNROLL
        for (uint32_t tile = 0; tile < kRowTiles; ++tile) {
          pairs[tile] = load_as<Words4>(
              &stage.inputs[tile][(step / kPairSteps * kWarpLanes + lane_index()) * 4]);
        }
      }
      PL_UNROLL
      for (uint32_t half = 0; half < 2; ++half) {
        if (step % kStepsOfGroup == 0) {
          affine[half] = unit_affine<Codes>(tiles[half],
                                            tiles[half].template load_numbers<Codes::kHasMultiples>(
                                                weights[half].numbers, k, k + step * kStepInputs));
        }
        const Words4 a = Codes::operand(tiles[half].panels(), loaded[half], step, affine[half]);
        PL_UNROLL
        for (uint32_t tile = 0; tile < kRowTiles; ++tile) {
          const uint32_t b[2] = {pairs[tile].words[step % kPairSteps * 2],
                                 pairs[tile].words[step % kPairSteps * 2 + 1]};
          mma_bf16(sums.of[half][tile], a.words, b);
        }
      }
    }
  }

  // Through shared memory, where the stages were: a loop over registers would be as long a
  // code as there are tiles.
  PL_DEVICE static void write(const Params& p, Shared& shared, Sums& totals) {
    static_assert(sizeof(shared.stages) >= Sums::kPieces * kThreads * sizeof(Floats4));
    auto* const saved = reinterpret_cast<Floats4*>(shared.stages);
    sync_threads();  // the last stage has been read
    totals.save(saved, kThreads);
    PL_ROLLED
    for (uint32_t tile = 0; tile < kRowTiles; ++tile) {
      const auto first = load_as<Floats4>(saved + tile * kThreads + thread_index());
      const auto second = load_as<Floats4>(saved + (kRowTiles + tile) * kThreads + thread_index());
      PL_UNROLL
      for (uint32_t parity = 0; parity < 2; ++parity) {
        const int64_t row = (first_row_tile(p) + tile) * kRowTile + 2 * lane_in_group() + parity;
        const Floats4 sums{
            {first.of[parity], first.of[2 + parity], second.of[parity], second.of[2 + parity]}};
        if (row >= p.num_rows) continue;
        if constexpr (kGated) {
          write_gated(p, row, sums);
        } else {
          write_columns(p.columns[0], p.columns[0].place(own_place(p), 4 * lane_group()),
                        p.num_columns, sums, p.out.row(row));
        }
      }
    }
  }

  // Two neighbouring inputs of the last product, of two gates and what they multiply. Those behind
  // the last column are zero.
  PL_DEVICE static void write_gated(const Params& p, int64_t row, const Floats4& sums) {
    const int64_t tile = own_place(p);
    const int64_t place = p.columns[0].place(tile / 2, 4 * lane_group() + tile % 2 * 2);
    if (place >= p.num_columns) return;
    float products[2] = {};
    PL_UNROLL
    for (int side = 0; side < 2; ++side) {
      if (place + side >= p.num_columns) continue;
      const float gate = p.columns[0].with_bias(sums.of[side], place + side);
      const float up = p.columns[1].with_bias(sums.of[2 + side], place + side);
      products[side] = activate_gate(p.activation, gate, up);
    }
    *p.gated_out.pair(row, static_cast<uint32_t>(place)) = pack_bf16(products[0], products[1]);
  }
};

}  // namespace paceline::cuda
