// Rows and quantised weights as bfloat16 panels, which products of many rows read.
#pragma once

#include "kernels/cuda/code/elementwise.h"
#include "kernels/cuda/code/panel_products.h"

namespace paceline::cuda {

// Panels of 32 rows like those of weights, without gaps: [panels, steps, kStepWords]. The words of
// a lane are in another order: the two pairs of a row, which are an instruction's operand, are
// neighbours.
struct InputPanels {
  uint32_t* first = nullptr;
  uint32_t steps = 0;  // of a panel

  PL_DEVICE uint32_t* panel(int64_t index) const {
    return first + index * int64_t{steps} * kStepWords;
  }
};

// The steps of a block that makes panels: one for each warp.
constexpr uint32_t kStepsOfBlock = kElementThreads / kWarpLanes;

// Rounds rows: panels along x of the grid, their steps along y. Rows behind the last are zero.
struct PackInputs {
  static constexpr std::string_view kName = "pack_inputs";
  static constexpr uint32_t kThreads = kElementThreads;
  struct Params {
    ConstRows x;
    int64_t num_rows = 0;
    uint32_t width = 0;
    bool is_aligned = false;  // each row is at a multiple of 16 bytes, the width one of 4
    InputPanels out;
  };
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const uint32_t step = block_index().y * kStepsOfBlock + warp_index();
    if (step >= p.out.steps) return;
    uint32_t* const out = p.out.panel(block_index().x) + step * kStepWords + lane_index() * 4;
    const uint32_t k = step * kStepInputs + lane_index() % 4 * 4;
    Floats4 x[4];
    PL_UNROLL
    for (uint32_t i = 0; i < 4; ++i) {
      x[i] = inputs_of(p, block_index().x * kPanelWidth + lane_index() / 4 * 4 + i, k);
    }
    PL_UNROLL
    for (uint32_t half = 0; half < 2; ++half) {
      const Floats4 &first = x[2 * half], &second = x[2 * half + 1];
      store_as(
          out + half * kHalfWords,
          Words4{{pack_bf16(first.of[0], first.of[1]), pack_bf16(first.of[2], first.of[3]),
                  pack_bf16(second.of[0], second.of[1]), pack_bf16(second.of[2], second.of[3])}});
    }
  }

 private:
  PL_DEVICE static Floats4 inputs_of(const Params& p, int64_t row, uint32_t k) {
    Floats4 inputs{};
    if (row >= p.num_rows || k >= p.width) return inputs;
    const float* const x = p.x.row(row) + k;
    if (p.is_aligned) return load_as<Floats4>(x);
    PL_UNROLL
    for (uint32_t i = 0; i < 4; ++i) inputs.of[i] = k + i < p.width ? x[i] : 0.0f;
    return inputs;
  }
};

// Dequantises panels, which begin at `first_panel`: panels along x of the grid, their steps along
// y. A lane makes 4 inputs, which lie in one group, of two columns at a time.
struct UnpackGroups {
  static constexpr std::string_view kName = "unpack_groups";
  static constexpr uint32_t kThreads = kElementThreads;
  struct Params {
    GroupedPanels weights;
    int64_t first_panel = 0;
    std::byte* out = nullptr;  // of that panel
    int64_t panel_bytes = 0;   // of out
  };
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const uint32_t step = block_index().y * kStepsOfBlock + warp_index();
    const uint32_t k = step * kStepInputs + lane_index() % 4 * 4;
    if (step >= padded_steps(p.weights.k)) return;
    auto* const out = reinterpret_cast<uint32_t*>(p.out + block_index().x * p.panel_bytes) +
                      step * kStepWords + lane_index() * 4;
    const int64_t column = (p.first_panel + block_index().x) * kPanelWidth + lane_index() / 4 * 4;
    PL_UNROLL
    for (uint32_t half = 0; half < 2; ++half) {
      Words4 words;
      PL_UNROLL
      for (uint32_t i = 0; i < 2; ++i) {
        const int64_t own = column + 2 * half + i;
        if (k >= p.weights.k) {
          words.words[i] = words.words[2 + i] = 0;
          continue;
        }
        const GroupAffine affine = load_group(p.weights, k >> p.weights.group_bits, own);
        words.words[i] = pair_of(p, affine, k, own);
        words.words[2 + i] = pair_of(p, affine, k + 2, own);
      }
      store_as(out + half * kHalfWords, words);
    }
  }

 private:
  PL_DEVICE static uint32_t pair_of(const Params& p, const GroupAffine& affine, uint32_t k,
                                    int64_t column) {
    return pack_bf16(group_element(p.weights, affine, k, column),
                     group_element(p.weights, affine, k + 1, column));
  }
};

}  // namespace paceline::cuda
