// Rows and quantised weights as bfloat16 panels, which products of many rows read.
#pragma once

#include "kernels/cuda/code/code_panels.h"
#include "kernels/cuda/code/elementwise.h"
#include "kernels/cuda/code/input_panels.h"
#include "kernels/cuda/code/panel_products.h"

namespace paceline::cuda {

// Threads of a block that makes panels have 8 inputs of a row or column each, in the order of a
// stage: neighbours in a core matrix, then along the inputs, then the groups.
struct StageChunk {
  uint32_t place;  // in the stage, in chunks of 16 bytes
  uint32_t row;    // of the panel
  uint32_t k;      // of the stage

  PL_DEVICE static StageChunk own() {
    const uint32_t place = thread_index(), core = place / 8;
    return {place, core / 8 * kCoreColumns + place % 8, core % 8 * 8};
  }
};
static_assert(kElementThreads == kStageBytes / 16);

// Rounds rows: panels along x of the grid, their stages along y. Rows behind the last are zero.
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
    const StageChunk chunk = StageChunk::own();
    const int64_t row = block_index().x * kPanelWidth + chunk.row;
    const uint32_t k = block_index().y * kStageInputs + chunk.k;
    const uint32_t width = row < p.num_rows ? p.width : 0;
    const Floats4 first = inputs_of_row(p.x, row, k, width, p.is_aligned);
    const Floats4 second = inputs_of_row(p.x, row, k + 4, width, p.is_aligned);
    store_as(
        p.out.stage(block_index().x, block_index().y) + chunk.place * 4,
        Words4{{pack_bf16(first.of[0], first.of[1]), pack_bf16(first.of[2], first.of[3]),
                pack_bf16(second.of[0], second.of[1]), pack_bf16(second.of[2], second.of[3])}});
  }
};

// Dequantises panels, which begin at `first_panel`: panels along x of the grid, their stages along
// y. The 8 inputs of a thread lie in one group.
struct UnpackGroups {
  static constexpr std::string_view kName = "unpack_groups";
  static constexpr uint32_t kThreads = kElementThreads;
  struct Params {
    GroupedPanels weights;
    int64_t first_panel = 0;
    std::byte* out = nullptr;  // [stages, panels of the grid, kStageBytes]
  };
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const StageChunk chunk = StageChunk::own();
    const uint32_t k = block_index().y * kStageInputs + chunk.k;
    const int64_t column = (p.first_panel + block_index().x) * kPanelWidth + chunk.row;
    Words4 words{};
    if (k < p.weights.k) {
      const GroupAffine affine = load_group(p.weights, k >> p.weights.group_bits, column);
      PL_UNROLL
      for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t codes = load_quad(p.weights, k / 4 + i / 2, column), first = i % 2 * 2;
        words.words[i] =
            pack_bf16(quad_element(affine, codes, first), quad_element(affine, codes, first + 1));
      }
    }
    const int64_t stage = int64_t{block_index().y} * grid_size().x + block_index().x;
    store_as(p.out + stage * kStageBytes + chunk.place * sizeof(Words4), words);
  }
};

}  // namespace paceline::cuda
