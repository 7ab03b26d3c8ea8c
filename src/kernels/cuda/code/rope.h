// Rotary position embedding: the table of cosines and sines of a step, and the rotation.
#pragma once

#include "kernels/cuda/code/elementwise.h"

namespace paceline::cuda {

// The values of paceline::RopePairs.
enum class RopePairKind : uint8_t { halves, neighbours };

// The angle is a float32 product, as in HF's rotary embeddings: that is what models were trained
// on. Its cosine and sine are computed in double.
struct RopeTable {
  static constexpr std::string_view kName = "rope_table";
  static constexpr uint32_t kThreads = kElementThreads;
  struct Params {
    const int32_t* positions = nullptr;
    const float* inv_freq = nullptr;
    int64_t half = 0;
    float scale = 1.0f;
    Rows table;  // pairs of cosine and sine
  };
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const auto position = static_cast<float>(p.positions[block_index().x]);
    const auto scale = static_cast<double>(p.scale);
    float* const table = p.table.row(block_index().x);
    for_each_column(p.half, [&p, position, scale, table](int64_t i) {
      const SinCos turn = sin_cos(static_cast<double>(position * p.inv_freq[i]));
      table[2 * i] = static_cast<float>(turn.cos * scale);
      table[2 * i + 1] = static_cast<float>(turn.sin * scale);
    });
  }
};

// Rotates pair i of a head.
PL_DEVICE void rotate_pair(float cosine, float sine, int64_t i, int64_t half, RopePairKind pairs,
                           float* head) {
  const bool are_halves = pairs == RopePairKind::halves;
  float* const a = head + (are_halves ? i : 2 * i);
  float* const b = are_halves ? a + half : a + 1;
  const float first = *a, second = *b;
  *a = fused_multiply_add(-second, sine, first * cosine);
  *b = fused_multiply_add(first, sine, second * cosine);
}

// Rotates the heads of a row in place, each pair of elements by a thread.
struct RopeHeads {
  static constexpr std::string_view kName = "rope";
  static constexpr uint32_t kThreads = kElementThreads;
  struct Params {
    ConstRows table;
    int64_t half = 0;
    RopePairKind pairs = RopePairKind::halves;
    Heads x;
  };
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const float* const table = p.table.row(block_index().x);
    const auto half = static_cast<uint32_t>(p.half);
    for_each_column(p.x.heads * p.half, [&p, table, half](int64_t index) {
      const uint32_t head = static_cast<uint32_t>(index) / half;
      const uint32_t i = static_cast<uint32_t>(index) % half;
      rotate_pair(table[2 * i], table[2 * i + 1], i, half, p.pairs,
                  p.x.head(block_index().x, head));
    });
  }
};

}  // namespace paceline::cuda
