// Rows rounded to bfloat16, as products with quantised weights take them (matmul_codes.h).
#pragma once

#include "kernels/cuda/code/elementwise.h"
#include "kernels/cuda/code/panel_products.h"

namespace paceline::cuda {

// Inputs stand as operands b: of two steps, 16 bytes for each lane.
constexpr uint32_t kPairSteps = 2;
constexpr uint32_t kPairInputs = kPairSteps * kStepInputs;
constexpr uint32_t kUnitPairs = kUnitInputs / kPairInputs;

// [groups of 64 rows][units of 64 inputs][tiles of 8 rows][pairs of steps][lanes][4 words]
constexpr uint32_t kRowTile = 8;
constexpr uint32_t kGroupTiles = 8;
constexpr uint32_t kRowGroup = kRowTile * kGroupTiles;
constexpr uint32_t kTileWords = kUnitPairs * kWarpLanes * 4;  // of a unit

struct CodeInputs {
  uint32_t* first = nullptr;
  uint32_t units = 0;  // of a row

  // Of row tile `tile`, counted from the first row.
  PL_DEVICE uint32_t* unit(int64_t tile, uint32_t index) const {
    return first +
           ((tile / kGroupTiles * units + index) * kGroupTiles + tile % kGroupTiles) * kTileWords;
  }
  // Of inputs k and k + 1 of a row, k being even.
  PL_DEVICE uint32_t* pair(int64_t row, uint32_t k) const {
    const uint32_t in_pair = k % kPairInputs, in_step = in_pair % kStepInputs;
    const auto lane = static_cast<uint32_t>(row % kRowTile * 4 + in_step / 4);
    return unit(row / kRowTile, k / kUnitInputs) +
           (k % kUnitInputs / kPairInputs * kWarpLanes + lane) * 4 + in_pair / kStepInputs * 2 +
           in_step % 4 / 2;
  }
};

// Rounds rows, 8 a tile: tiles along x of the grid, units along y, one for each warp. Rows behind
// the last and inputs behind a row's end are zero.
struct PackCodeInputs {
  static constexpr std::string_view kName = "pack_code_inputs";
  static constexpr uint32_t kThreads = kElementThreads;
  static constexpr uint32_t kUnitsOfBlock = kThreads / kWarpLanes;
  struct Params {
    ConstRows x;
    int64_t num_rows = 0;
    uint32_t width = 0;
    bool is_aligned = false;  // each row is at a multiple of 16 bytes, the width one of 4
    CodeInputs out;
  };
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const uint32_t unit = block_index().y * kUnitsOfBlock + warp_index();
    if (unit >= p.out.units) return;
    const int64_t tile = block_index().x, row = tile * kRowTile + lane_group();
    const uint32_t k = unit * kUnitInputs + lane_in_group() * 4;
    Floats4 x[kUnitSteps];
    PL_UNROLL
    for (uint32_t step = 0; step < kUnitSteps; ++step) {
      x[step] = inputs_of_row(p.x, row, k + step * kStepInputs, row < p.num_rows ? p.width : 0,
                              p.is_aligned);
    }
    uint32_t* const out = p.out.unit(tile, unit) + lane_index() * 4;
    PL_UNROLL
    for (uint32_t i = 0; i < kUnitPairs; ++i) {
      const Floats4 &first = x[2 * i], &second = x[2 * i + 1];
      store_as(
          out + i * kWarpLanes * 4,
          Words4{{pack_bf16(first.of[0], first.of[1]), pack_bf16(first.of[2], first.of[3]),
                  pack_bf16(second.of[0], second.of[1]), pack_bf16(second.of[2], second.of[3])}});
    }
  }
};

}  // namespace paceline::cuda
