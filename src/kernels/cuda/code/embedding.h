// Rows of an embedding, which are columns of its packed matrix: rows of ids along x of the grid.
#pragma once

#include "kernels/cuda/code/code_panels.h"
#include "kernels/cuda/code/elementwise.h"
#include "kernels/cuda/code/packed_panels.h"

namespace paceline::cuda {

template <class Panels>
struct EmbeddingParams {
  Panels table;
  const int32_t* ids = nullptr;
  float scale = 1.0f;
  Rows out;
};

template <class Stored>
struct EmbeddingRows {
  static constexpr std::string_view kName =
      TypeNames{.f32 = "embedding_f32", .f16 = "embedding_f16", .bf16 = "embedding_bf16"}
          .of<Stored>();
  static constexpr uint32_t kThreads = kElementThreads;
  using Params = EmbeddingParams<PlainPanels>;
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const int64_t column = p.ids[block_index().x];
    float* const out = p.out.row(block_index().x);
    for_each_column(p.table.k, [&p, column, out](int64_t i) {
      const auto k = static_cast<uint32_t>(i);
      out[i] = element(p.table, k, column) * p.scale;
    });
  }

 private:
  PL_DEVICE static float element(const PlainPanels& table, uint32_t k, int64_t column) {
    if constexpr (std::is_same_v<Stored, Bf16>) {
      return to_float(Bf16{static_cast<uint16_t>(bf16_pair(table, k / 2, column) >> k % 2 * 16)});
    } else {
      return plain_element<Stored>(table, k, column);
    }
  }
};

struct EmbeddingGroups {
  static constexpr std::string_view kName = "embedding_groups";
  static constexpr uint32_t kThreads = kElementThreads;
  using Params = EmbeddingParams<GroupedPanels>;
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const int64_t column = p.ids[block_index().x];
    float* const out = p.out.row(block_index().x);
    for_each_column(p.table.k, [&p, column, out](int64_t i) {
      out[i] = group_element(p.table, static_cast<uint32_t>(i), column) * p.scale;
    });
  }
};

}  // namespace paceline::cuda
