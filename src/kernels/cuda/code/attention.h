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

// Merges the chunks of a row and head.
struct MergeChunks {
  static constexpr std::string_view kName = "merge_chunks";
  static constexpr uint32_t kThreads = kAttentionThreads;
  using Params = AttentionKernelParams;
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    constexpr int kAtOnce = 4;  // are loaded before they are merged, so that loads overlap
    const AttentionRow& row = p.rows[block_index().x];
    const int64_t first = row.first / kChunkKeys;
    const int64_t count = (row.end + kChunkKeys - 1) / kChunkKeys - first;
    AttentionState state;
    for (int64_t index = 0; index < count; index += kAtOnce) {
      AttentionState added[kAtOnce];
      PL_UNROLL
      for (int i = 0; i < kAtOnce; ++i) {
        if (index + i < count) added[i] = load(p, index + i);
      }
      PL_UNROLL
      for (int i = 0; i < kAtOnce; ++i) {
        if (index + i < count) merge_chunk(p.kv.head_dim, added[i], state);
      }
    }
    write_attention(p, row, state);
  }

 private:
  PL_DEVICE static AttentionState load(const Params& p, int64_t index) {
    const float* const partial = partial_of(p, block_index().x, block_index().y, index);
    AttentionState state;
    state.softmax = {partial[0], partial[1]};
    for_own_elements(p.kv.head_dim,
                     [&](int i, int64_t d) { state.values[i] = partial[kPartialHead + d]; });
    return state;
  }
};

}  // namespace paceline::cuda
