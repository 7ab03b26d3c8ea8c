// Rows and quantised weights as bfloat16 panels, which products of many rows read.
#pragma once

#include "kernels/cuda/code/elementwise.h"
#include "kernels/cuda/code/packed_panels.h"

namespace paceline::cuda {

// Panels of 32 rows like those of weights, without gaps: [panels, pairs of inputs, 32 rows], each
// pair a word.
struct InputPanels {
  uint32_t* first = nullptr;
  uint32_t num_pairs = 0;

  PL_DEVICE uint32_t* panel(int64_t index) const { return first + index * num_pairs * kPanelWidth; }
};

// Rounds rows. A block takes 32 rows and 32 pairs of inputs: tiles along x of the grid, those of
// one panel side by side. Rows behind the last are zero.
struct PackInputs {
  static constexpr std::string_view kName = "pack_inputs";
  static constexpr uint32_t kThreads = kElementThreads;
  struct Params {
    ConstRows x;
    int64_t num_rows = 0;
    uint32_t width = 0;
    InputPanels out;
  };
  // An odd pitch, so that neither rows nor pairs share a bank.
  struct Shared {
    uint32_t words[kPanelWidth][kPanelWidth + 1];  // [pair][row]
  };

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    constexpr uint32_t kPairs = uint32_t{kPanelWidth}, kWarps = kThreads / kWarpLanes;
    const uint32_t tiles = (p.out.num_pairs + kPairs - 1) / kPairs;
    const int64_t panel = block_index().x / tiles;
    const uint32_t first_pair = block_index().x % tiles * kPairs;
    for (uint32_t i = warp_index(); i < kPanelWidth; i += kWarps) {
      shared.words[lane_index()][i] =
          pair_of(p, panel * kPanelWidth + i, first_pair + lane_index());
    }
    sync_threads();
    for (uint32_t i = warp_index(); i < kPairs; i += kWarps) {
      if (first_pair + i >= p.out.num_pairs) break;
      p.out.panel(panel)[(first_pair + i) * kPanelWidth + lane_index()] =
          shared.words[i][lane_index()];
    }
  }

 private:
  PL_DEVICE static uint32_t pair_of(const Params& p, int64_t row, uint32_t pair) {
    if (row >= p.num_rows) return 0;
    const float* const x = p.x.row(row);
    const uint32_t k = 2 * pair;
    return pack_bf16(k < p.width ? x[k] : 0.0f, k + 1 < p.width ? x[k + 1] : 0.0f);
  }
};

// Dequantises panels: along x of the grid, their pairs along y. A warp writes 32 columns of
// kPairsOfLane pairs, whose inputs lie in one group.
struct UnpackGroups {
  static constexpr std::string_view kName = "unpack_groups";
  static constexpr uint32_t kThreads = kElementThreads;
  static constexpr uint32_t kPairsOfLane = 4;
  static constexpr uint32_t kPairsOfBlock = kThreads / kWarpLanes * kPairsOfLane;
  struct Params {
    GroupedPanels weights;
    int64_t first_panel = 0;
    std::byte* out = nullptr;  // of that panel
    int64_t panel_bytes = 0;   // of out
  };
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const int64_t column = (p.first_panel + block_index().x) * kPanelWidth + lane_index();
    auto* const out = reinterpret_cast<uint32_t*>(p.out + block_index().x * p.panel_bytes);
    const uint32_t first = block_index().y * kPairsOfBlock + warp_index() * kPairsOfLane;
    if (2 * first >= p.weights.k) return;
    const GroupAffine affine = load_group(p.weights, 2 * first >> p.weights.group_bits, column);
    for (uint32_t pair = first; pair < first + kPairsOfLane; ++pair) {
      out[pair * kPanelWidth + lane_index()] =
          pack_bf16(group_element(p.weights, affine, 2 * pair, column),
                    group_element(p.weights, affine, 2 * pair + 1, column));
    }
  }
};

}  // namespace paceline::cuda
