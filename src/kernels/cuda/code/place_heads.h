// What stands between the product of queries, keys and values and attention: norms of the heads of
// queries and keys, their rotation, and the storing of keys and values. A warp for each head, with
// the bits of kernels for each step.
#pragma once

#include "kernels/cuda/code/attention_chunk.h"
#include "kernels/cuda/code/norms.h"
#include "kernels/cuda/code/rope.h"
#include "kernels/cuda/code/store_kv.h"

namespace paceline::cuda {

struct HeadNorm {
  const float* weight = nullptr;  // [head_dim]; null: heads stay as they are
  float eps = 0.0f;
};

// Rows along x of the grid; along y each row's heads of queries, keys and values, in this order.
template <class Stored>
struct PlaceHeads {
  static constexpr std::string_view kName = TypeNames{.f32 = "place_heads_f32",
                                                      .f16 = "place_heads_f16",
                                                      .bf16 = "place_heads_bf16",
                                                      .i8 = "place_heads_i8"}
                                                .of<Stored>();
  static constexpr uint32_t kWarps = 4;
  static constexpr uint32_t kThreads = kWarps * kWarpLanes;
  struct Params {
    Heads q;  // in place
    Heads k;
    Heads v;
    HeadNorm q_norm{};
    HeadNorm k_norm{};
    ConstRows table{};  // of the rotation; may be null
    int64_t half = 0;
    RopePairKind pairs = RopePairKind::halves;
    const int64_t* slots = nullptr;  // of the rows; -1: not stored
    KvBlocks kv;
  };
  struct Shared {
    float elements[kWarps][kMostHeadDim];
  };

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const int64_t row = block_index().x, dims = p.kv.head_dim;
    const int64_t index = int64_t{block_index().y} * kWarps + warp_index();
    float* const elements = shared.elements[warp_index()];
    if (index < p.q.heads) {
      float* const q = p.q.head(row * p.q.heads + index);
      place(p, q, p.q_norm, elements);
      for (int64_t d = lane_index(); d < dims; d += kWarpLanes) q[d] = elements[d];
      return;
    }
    const int64_t slot = p.slots[row], head = (index - p.q.heads) % p.k.heads;
    if (index >= p.q.heads + 2 * p.k.heads || slot < 0) return;
    const KvSlot<Stored> to =
        kv_slot<Stored>(p.kv, slot / p.kv.block_size, slot % p.kv.block_size, head);
    if (index < p.q.heads + p.k.heads) {
      place(p, p.k.head(row * p.k.heads + head), p.k_norm, elements);
      store_head<Stored>(elements, dims, to.key, p.kv.block_size, to.key_scale);
    } else {
      store_head<Stored>(p.v.head(row * p.v.heads + head), dims, to.value, 1, to.value_scale);
    }
  }

 private:
  // The head x, normalised and rotated. A lane may read and write every 32nd of `elements`.
  PL_DEVICE static void place(const Params& p, const float* x, const HeadNorm& norm,
                              float* elements) {
    const int64_t dims = p.kv.head_dim;
    float factor = 0.0f;
    if (norm.weight != nullptr) {
      const float squares = sum_by_warp(dims, [x](int64_t d) { return x[d] * x[d]; });
      factor = inverse_root(squares / static_cast<float>(dims), norm.eps);
    }
    for (int64_t d = lane_index(); d < dims; d += kWarpLanes) {
      elements[d] = norm.weight != nullptr ? x[d] * factor * norm.weight[d] : x[d];
    }
    if (p.table.first == nullptr) return;
    sync_warp();
    const float* const table = p.table.row(block_index().x);
    for (int64_t i = lane_index(); i < p.half; i += kWarpLanes) {
      rotate_pair(table, i, p.half, p.pairs, elements);
    }
    sync_warp();
  }
};

}  // namespace paceline::cuda
