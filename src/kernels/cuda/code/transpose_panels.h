// A part of a packed matrix, turned: its inputs become columns, as gradients of a product's inputs
// multiply it.
#pragma once

#include "kernels/cuda/code/code_panels.h"
#include "kernels/cuda/code/elementwise.h"
#include "kernels/cuda/code/packed_panels.h"

namespace paceline::cuda {

template <class Panels>
struct TransposeParams {
  Panels from;
  int64_t from_columns = 0;  // the inputs of what is written
  uint32_t first_k = 0;      // of `from`, a multiple of 32: the first column that is written
  std::byte* to = nullptr;
  int64_t to_panel_bytes = 0;
  int64_t to_stage_bytes = 0;  // of bfloat16
};

// Float32 and float16, as units of so many bytes: panels of `to` along x of the grid, its inputs
// along y.
template <class Unit>
struct TransposePanels {
  static constexpr std::string_view kName =
      sizeof(Unit) == 2 ? "transpose_panels_2" : "transpose_panels_4";
  static constexpr uint32_t kThreads = kElementThreads;
  using Params = TransposeParams<PlainPanels>;
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    auto* const to = reinterpret_cast<Unit*>(p.to + block_index().x * p.to_panel_bytes);
    const uint32_t first_k = p.first_k + block_index().x * static_cast<uint32_t>(kPanelWidth);
    for_each_column(p.from_columns * kPanelWidth, [&p, to, first_k](int64_t i) {
      const int64_t column = i / kPanelWidth;
      const uint32_t k = first_k + static_cast<uint32_t>(i % kPanelWidth);
      const auto* const from = reinterpret_cast<const Unit*>(p.from.panel_of(column));
      to[i] = k < p.from.k ? from[int64_t{k} * kPanelWidth + column % kPanelWidth] : Unit{};
    });
  }
};

// Writes a stage of a panel of bfloat16: panels along x of the grid, stages along y. A warp turns
// core matrices of 8 by 8, whose words element(k, column) of `from` makes.
template <class Element>
PL_DEVICE void transpose_stage(std::byte* stage, uint32_t first_k, uint32_t num_k,
                               int64_t num_columns, Element&& element) {
  auto* const words = reinterpret_cast<uint32_t*>(stage);
  for (uint32_t word = thread_index(); word < kStageWords; word += kElementThreads) {
    const uint32_t in_group = word % (kCoreGroupBytes / 4), in_core = word % (kCoreBytes / 4);
    const uint32_t k = first_k + word / (kCoreGroupBytes / 4) * kCoreColumns + in_core / 4;
    const uint32_t pair = in_group / (kCoreBytes / 4) * 4 + in_core % 4;
    const int64_t column = int64_t{block_index().y} * kStageInputs + 2 * pair;
    const float low = k < num_k && column < num_columns ? element(k, column) : 0.0f;
    const float high = k < num_k && column + 1 < num_columns ? element(k, column + 1) : 0.0f;
    words[word] = pack_bf16(low, high);
  }
}

struct TransposeBf16Panels {
  static constexpr std::string_view kName = "transpose_panels_bf16";
  static constexpr uint32_t kThreads = kElementThreads;
  using Params = TransposeParams<PlainPanels>;
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    transpose_stage(p.to + block_index().y * p.to_stage_bytes + block_index().x * p.to_panel_bytes,
                    p.first_k + block_index().x * static_cast<uint32_t>(kPanelWidth), p.from.k,
                    p.from_columns, [&p](uint32_t k, int64_t column) {
                      const uint32_t pair = bf16_pair(p.from, k / 2, column);
                      return to_float(Bf16{static_cast<uint16_t>(pair >> k % 2 * 16)});
                    });
  }
};

// Quantised weights, whose elements are rounded to bfloat16.
struct TransposeGroups {
  static constexpr std::string_view kName = "transpose_groups";
  static constexpr uint32_t kThreads = kElementThreads;
  using Params = TransposeParams<GroupedPanels>;
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    transpose_stage(p.to + block_index().y * p.to_stage_bytes + block_index().x * p.to_panel_bytes,
                    p.first_k + block_index().x * static_cast<uint32_t>(kPanelWidth), p.from.k,
                    p.from_columns,
                    [&p](uint32_t k, int64_t column) { return group_element(p.from, k, column); });
  }
};

}  // namespace paceline::cuda
