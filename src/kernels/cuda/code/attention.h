// Attention over the paged store. A row's chunks are merged in ascending order, by the block that
// computed them or, where there are few rows, by another one: its bits depend on what it sees
// alone.
#pragma once

#include "kernels/cuda/code/attention_chunk.h"

namespace paceline::cuda {

// Of one row and head. A thread has every 128th element of the values.
struct AttentionState {
  SoftmaxState softmax;
  float values[kValuesPerThread] = {};
};

PL_DEVICE void merge_chunk(int64_t head_dim, const AttentionState& added, AttentionState& state) {
  const MergeShares shares = merge_softmax(added.softmax, state.softmax);
  for_own_elements(head_dim, [&](int i, int64_t) {
    state.values[i] = shares.merge(added.values[i], state.values[i]);
  });
}

template <class Stored>
PL_DEVICE AttentionState compute_chunk(const AttentionKernelParams& p, const AttentionRow& row,
                                       int64_t chunk, AttentionShared& shared) {
  const ChunkRange range = chunk_range(row, chunk);
  AttentionState state;
  state.softmax = weigh_chunk<Stored>(p, row, range, shared);
  for_own_elements(p.kv.head_dim, [&](int i, int64_t d) {
    state.values[i] = mix_values<Stored>(p, row, range, shared, d);
  });
  return state;
}

PL_DEVICE void write_attention(const AttentionKernelParams& p, const AttentionRow& row,
                               const AttentionState& state) {
  float* const out = p.out.head(row.row, block_index().y);
  for_own_elements(p.kv.head_dim,
                   [&](int i, int64_t d) { out[d] = state.values[i] / state.softmax.sum; });
  if (thread_index() > 0 || p.log_sum_exp.first == nullptr) return;
  p.log_sum_exp.row(row.row)[block_index().y] = log_of_sum(state.softmax);
}

// A block computes all chunks of a row and head.
template <class Stored>
struct Attention {
  static constexpr std::string_view kName = TypeNames{.f32 = "attention_f32",
                                                      .f16 = "attention_f16",
                                                      .bf16 = "attention_bf16",
                                                      .i8 = "attention_i8"}
                                                .of<Stored>();
  static constexpr uint32_t kThreads = kAttentionThreads;
  using Params = AttentionKernelParams;
  using Shared = AttentionShared;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const AttentionRow& row = p.rows[block_index().x];
    load_query(p, row, shared);
    AttentionState state;
    for (int64_t chunk = row.first / kChunkKeys; chunk * kChunkKeys < row.end; ++chunk) {
      merge_chunk(p.kv.head_dim, compute_chunk<Stored>(p, row, chunk, shared), state);
    }
    write_attention(p, row, state);
  }
};

// A block computes one chunk of a row and head: the one of its z in the grid.
template <class Stored>
struct AttentionChunks {
  static constexpr std::string_view kName = TypeNames{.f32 = "attention_chunks_f32",
                                                      .f16 = "attention_chunks_f16",
                                                      .bf16 = "attention_chunks_bf16",
                                                      .i8 = "attention_chunks_i8"}
                                                .of<Stored>();
  static constexpr uint32_t kThreads = kAttentionThreads;
  using Params = AttentionKernelParams;
  using Shared = AttentionShared;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const AttentionRow& row = p.rows[block_index().x];
    const int64_t chunk = row.first / kChunkKeys + block_index().z;
    if (chunk * kChunkKeys >= row.end) return;
    load_query(p, row, shared);
    const AttentionState state = compute_chunk<Stored>(p, row, chunk, shared);
    float* const partial = partial_of(p, block_index().x, block_index().y, block_index().z);
    if (thread_index() == 0) {
      partial[0] = state.softmax.max;
      partial[1] = state.softmax.sum;
    }
    for_own_elements(p.kv.head_dim,
                     [&](int i, int64_t d) { partial[kPartialHead + d] = state.values[i]; });
  }
};

// Merges the chunks of a row and head, 32 at a time: each lane computes the shares of one chunk.
struct MergeChunks {
  static constexpr std::string_view kName = "merge_chunks";
  static constexpr uint32_t kThreads = kAttentionThreads;
  using Params = AttentionKernelParams;
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const AttentionRow& row = p.rows[block_index().x];
    const int64_t first = row.first / kChunkKeys;
    const auto count = static_cast<int32_t>((row.end + kChunkKeys - 1) / kChunkKeys - first);
    AttentionState state;
    for (int32_t begin = 0; begin < count; begin += kWarpLanes) {
      const int32_t left = count - begin;
      const int32_t here = left < static_cast<int32_t>(kWarpLanes) ? left : kWarpLanes;
      const float* const partials = partial_of(p, block_index().x, block_index().y, begin);
      const MergeShares shares = merge_sums(p, partials, here, state.softmax);
      PL_UNROLL
      for (int i = 0; i < kValuesPerThread; ++i) {
        if (i * int64_t{kAttentionThreads} >= p.kv.head_dim) continue;
        state.values[i] = merge_values(p, partials, here, shares, i, state.values[i]);
      }
    }
    write_attention(p, row, state);
  }

 private:
  PL_DEVICE static int32_t floats_of_chunk(const Params& p) {
    return static_cast<int32_t>(kPartialHead + p.kv.head_dim);
  }

  // The shares of the lane's chunk.
  PL_DEVICE static MergeShares merge_sums(const Params& p, const float* partials, int32_t count,
                                          SoftmaxState& state) {
    const auto lane = static_cast<int32_t>(lane_index());
    const float* const own =
        partials + (lane < count ? lane : count - 1) * int64_t{floats_of_chunk(p)};
    const float own_max = own[0], own_sum = own[1];
    // The maximum of the chunks up to the lane's.
    float max = Maximum::combine(own_max, state.max);
    PL_UNROLL
    for (int32_t distance = 1; distance < static_cast<int32_t>(kWarpLanes); distance *= 2) {
      const float before = shuffle(max, static_cast<uint32_t>(lane - distance) % kWarpLanes);
      max = lane >= distance ? Maximum::combine(max, before) : max;
    }
    const float before = shuffle(max, static_cast<uint32_t>(lane - 1) % kWarpLanes);
    const MergeShares shares = {power_of_two((lane > 0 ? before : state.max) - max),
                                power_of_two(own_max - max)};
    int32_t i = 0;
    do {  // a branch before the loop would be a second wait, for the sums
      state.sum = of_lane(shares, i).merge(shuffle(own_sum, static_cast<uint32_t>(i)), state.sum);
    } while (++i < count);
    state.max = shuffle(max, static_cast<uint32_t>(count - 1));
    return shares;
  }

  PL_DEVICE static MergeShares of_lane(const MergeShares& shares, int32_t lane) {
    const auto index = static_cast<uint32_t>(lane);
    return {shuffle(shares.old_share, index), shuffle(shares.new_share, index)};
  }

  // Eight chunks are loaded before they are merged. Threads behind the head's last element merge
  // it as well, as lanes need one another.
  PL_DEVICE static float merge_values(const Params& p, const float* partials, int32_t count,
                                      const MergeShares& shares, int i, float value) {
    constexpr int kAtOnce = 8;
    const int64_t d = int64_t{thread_index()} + i * int64_t{kAttentionThreads};
    const float* const from = partials + kPartialHead + (d < p.kv.head_dim ? d : 0);
    for (int32_t begin = 0; begin < count; begin += kAtOnce) {
      float added[kAtOnce];
      PL_UNROLL
      for (int k = 0; k < kAtOnce; ++k) {
        const int32_t chunk = begin + k < count ? begin + k : count - 1;
        added[k] = from[chunk * int64_t{floats_of_chunk(p)}];
      }
      PL_UNROLL
      for (int k = 0; k < kAtOnce; ++k) {
        const float merged = of_lane(shares, begin + k).merge(added[k], value);
        value = begin + k < count ? merged : value;
      }
    }
    return value;
  }
};

}  // namespace paceline::cuda
