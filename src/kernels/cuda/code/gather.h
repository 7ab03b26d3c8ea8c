// Copies of chosen rows of a tensor and of chosen columns of a packed matrix.
#pragma once

#include "kernels/cuda/code/elementwise.h"
#include "kernels/cuda/code/packed_panels.h"

namespace paceline::cuda {

struct GatherRows {
  static constexpr std::string_view kName = "gather_rows";
  static constexpr uint32_t kThreads = kElementThreads;
  struct Params {
    ConstRows x;
    const int32_t* rows = nullptr;  // of x, one for each row of out
    Rows out;
    int64_t width = 0;
  };
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const float* const x = p.x.row(p.rows[block_index().x]);
    float* const out = p.out.row(block_index().x);
    for_each_column(p.width, [=](int64_t i) { out[i] = x[i]; });
  }
};

// Copies the heads of all rows: rows along x of the grid, the elements of their heads along y.
struct CopyHeads {
  static constexpr std::string_view kName = "copy_heads";
  static constexpr uint32_t kThreads = kElementThreads;
  struct Params {
    Heads x;
    Heads out;
    int64_t head_dim = 0;
  };
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const auto dims = static_cast<uint32_t>(p.head_dim);
    const int64_t row = block_index().x;
    for_each_column(p.x.heads * p.head_dim, [&p, dims, row](int64_t i) {
      const uint32_t head = static_cast<uint32_t>(i) / dims, d = static_cast<uint32_t>(i) % dims;
      p.out.head(row, head)[d] = p.x.head(row, head)[d];
    });
  }
};

// Copies the chosen columns of a bfloat16 matrix. Rows of the grid are columns of `to`.
struct GatherBf16Columns {
  static constexpr std::string_view kName = "gather_columns_bf16";
  static constexpr uint32_t kThreads = kElementThreads;
  struct Params {
    PlainPanels from;
    std::byte* to = nullptr;
    int64_t to_stage_bytes = 0;
    const int32_t* columns = nullptr;  // of `from`
  };
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const int64_t to_column = block_index().x, from_column = p.columns[block_index().x];
    std::byte* const to = p.to + to_column / kPanelWidth * kStageBytes;
    const auto place = static_cast<uint32_t>(to_column % kPanelWidth);
    for_each_column(num_stages(p.from.k) * kStagePairs, [=, &p](int64_t i) {
      const auto pair = static_cast<uint32_t>(i);
      auto* const words = reinterpret_cast<uint32_t*>(to + pair / kStagePairs * p.to_stage_bytes);
      words[core_word(pair, place)] = bf16_pair(p.from, pair, from_column);
    });
  }
};

// Copies the chosen columns of a plain matrix, whose panels have `units` units of 32 columns in
// turn. Rows of the grid are columns of `to`.
template <class Unit>
struct GatherColumns {
  static constexpr std::string_view kName =
      sizeof(Unit) == 2 ? "gather_columns_2" : "gather_columns_4";
  static constexpr uint32_t kThreads = kElementThreads;
  struct Params {
    PlainPanels from;
    std::byte* to = nullptr;
    int64_t units = 0;
    const int32_t* columns = nullptr;  // of `from`
  };
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const int64_t to_column = block_index().x, from_column = p.columns[block_index().x];
    const auto* const from = reinterpret_cast<const Unit*>(p.from.panel_of(from_column));
    auto* const to = reinterpret_cast<Unit*>(p.to + to_column / kPanelWidth * p.from.panel_bytes);
    for_each_column(p.units, [=](int64_t i) {
      to[i * kPanelWidth + to_column % kPanelWidth] =
          from[i * kPanelWidth + from_column % kPanelWidth];
    });
  }
};

}  // namespace paceline::cuda
