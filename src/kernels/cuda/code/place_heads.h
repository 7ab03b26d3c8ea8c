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

  static constexpr int kOwnElements = kMostHeadDim / kWarpLanes;  // of a lane: every 32nd
  static constexpr int kOwnPairs = kOwnElements / 2;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const int64_t row = block_index().x, index = int64_t{block_index().y} * kWarps + warp_index();
    float* const elements = shared.elements[warp_index()];
    if (index < p.q.heads) {
      float* const q = p.q.head(row, index);
      place(p, q, p.q_norm, elements);
      for (int64_t d = lane_index(); d < p.kv.head_dim; d += kWarpLanes) q[d] = elements[d];
      return;
    }
    if (index >= p.q.heads + 2 * p.k.heads) return;
    const bool is_key = index < p.q.heads + p.k.heads;
    const int64_t head = index - p.q.heads - (is_key ? 0 : p.k.heads);
    const int64_t slot = p.slots[row];
    if (is_key) {
      place(p, p.k.head(row, head), p.k_norm, elements);
      if (slot < 0) return;
      const KvSlot<Stored> to = kv_slot<Stored>(p.kv, slot, head);
      store_head<Stored>(elements, p.kv.head_dim, to.key, p.kv.block_size, to.key_scale);
    } else {
      Elements value;
      value.load(p.v.head(row, head), p.kv.head_dim);
      value.store(elements, p.kv.head_dim);
      if (slot < 0) return;
      const KvSlot<Stored> to = kv_slot<Stored>(p.kv, slot, head);
      store_head<Stored>(elements, p.kv.head_dim, to.value, 1, to.value_scale);
    }
  }

 private:
  // A head's elements of a lane, all loaded before the first is used.
  struct Elements {
    float of[kOwnElements];

    PL_DEVICE void load(const float* head, int64_t dims) {
      const auto left = static_cast<int32_t>(dims) - static_cast<int32_t>(lane_index());
      PL_UNROLL
      for (int k = 0; k < kOwnElements; ++k) {
        of[k] = k * 32 < left ? head[lane_index() + k * kWarpLanes] : 0.0f;
      }
    }
    PL_DEVICE void store(float* to, int64_t dims) const {
      const auto left = static_cast<int32_t>(dims) - static_cast<int32_t>(lane_index());
      PL_UNROLL
      for (int k = 0; k < kOwnElements; ++k) {
        if (k * 32 < left) to[lane_index() + k * kWarpLanes] = of[k];
      }
    }
  };

  // The head x, normalised and rotated. A lane may read and write every 32nd of `elements`.
  PL_DEVICE static void place(const Params& p, const float* x, const HeadNorm& norm,
                              float* elements) {
    const int64_t dims = p.kv.head_dim;
    Elements own, weight;
    own.load(x, dims);
    weight.load(norm.weight, norm.weight != nullptr ? dims : 0);
    const float* const table = p.table.row(block_index().x);
    const auto pairs = static_cast<uint32_t>(p.table.first != nullptr ? p.half : 0);
    float cosines[kOwnPairs], sines[kOwnPairs];
    PL_UNROLL
    for (uint32_t k = 0; k < kOwnPairs; ++k) {
      const uint32_t i = lane_index() + k * kWarpLanes;
      cosines[k] = i < pairs ? table[2 * i] : 0.0f;
      sines[k] = i < pairs ? table[2 * i + 1] : 0.0f;
    }
    if (norm.weight != nullptr) {
      const float squares = squares_of(own, dims);
      const float factor = inverse_root(squares / static_cast<float>(dims), norm.eps);
      PL_UNROLL
      for (int k = 0; k < kOwnElements; ++k) own.of[k] = own.of[k] * factor * weight.of[k];
    }
    own.store(elements, dims);
    if (pairs == 0) return;
    sync_warp();
    PL_UNROLL
    for (uint32_t k = 0; k < kOwnPairs; ++k) {
      const uint32_t i = lane_index() + k * kWarpLanes;
      if (i < pairs) rotate_pair(cosines[k], sines[k], i, p.half, p.pairs, elements);
    }
    sync_warp();
  }

  // The sum of squares, with the bits of a block of kRowThreads; every lane gets it.
  PL_DEVICE static float squares_of(const Elements& own, int64_t dims) {
    if (dims <= 64) return squares_of_warps<2>(own, dims);
    if (dims <= 128) return squares_of_warps<4>(own, dims);
    return squares_of_warps<kRowThreads / kWarpLanes>(own, dims);
  }

  // kCount of the block's warps have elements.
  template <int kCount>
  PL_DEVICE static float squares_of_warps(const Elements& own, int64_t dims) {
    constexpr int kWarpsOfRow = kRowThreads / kWarpLanes;
    float sums[kCount];
    PL_UNROLL
    for (int warp = 0; warp < kCount; ++warp) {
      sums[warp] = 0.0f;  // absent elements are 0
      PL_UNROLL
      for (int k = warp; k < kOwnElements; k += kWarpsOfRow) {
        sums[warp] = sums[warp] + own.of[k] * own.of[k];
      }
    }
    PL_UNROLL
    for (uint32_t distance = kWarpLanes / 2; distance > 0; distance /= 2) {
      PL_UNROLL
      for (int warp = 0; warp < kCount; ++warp) {
        sums[warp] = sums[warp] + shuffle_xor(sums[warp], distance);
      }
    }
    float total = sums[0];
    PL_UNROLL
    for (int warp = 1; warp < kCount; ++warp) {
      if (warp * 32 < dims) total = total + sums[warp];
    }
    return total;
  }
};

}  // namespace paceline::cuda
