// Attention over the paged store: a block for each row and head. Keys are taken in chunks of 64
// absolute positions; each gives a maximum, a sum and weighted values of its own, and these are
// merged in ascending order. So a row's bits depend on what it sees alone.
#pragma once

#include "kernels/cuda/code/block_reduce.h"
#include "kernels/cuda/code/elementwise.h"
#include "kernels/cuda/code/kv_blocks.h"
#include "kernels/cuda/code/rows.h"

namespace paceline::cuda {

constexpr int64_t kChunkKeys = 64;
constexpr uint32_t kAttentionThreads = 128;
constexpr int64_t kMostHeadDim = 512;
constexpr int64_t kValuesPerThread = kMostHeadDim / kAttentionThreads;

// One row: the positions that it sees, and its sequence's blocks.
struct AttentionRow {
  int64_t row = 0;
  int64_t first = 0;  // visible position
  int64_t end = 0;    // behind the last
  int64_t table = 0;  // where its block table begins in `tables`
};

struct AttentionKernelParams {
  Heads q;
  Heads out;
  KvBlocks kv;
  const AttentionRow* rows = nullptr;  // along x of the grid; heads along y
  const int32_t* tables = nullptr;
  int64_t group = 1;  // heads of a kv head
  float scale = 1.0f;
  float soft_cap = 0.0f;
  Rows log_sum_exp;  // may be null
};

struct AttentionShared {
  float query[kMostHeadDim];
  // Of the keys of a chunk.
  float scores[kChunkKeys];
  float exponentials[kChunkKeys];  // of the score less the chunk's maximum
  float weights[kChunkKeys];       // the exponential, times the value's scale where there is one
};

// What chunks up to some position gave; the values stand beside it.
struct SoftmaxState {
  float max = -kInfinity;
  float sum = 0.0f;
};

// The visible positions of a chunk, from its first.
struct ChunkRange {
  int64_t first_position;
  int64_t begin;
  int64_t end;
};

template <class Stored>
PL_DEVICE KvSlot<Stored> slot_of(const AttentionKernelParams& p, const AttentionRow& row,
                                 int64_t position) {
  const int64_t block = p.tables[row.table + position / p.kv.block_size];
  const int64_t kv_head = block_index().y / p.group;
  return kv_slot<Stored>(p.kv, block, position % p.kv.block_size, kv_head);
}

// Four sums, of every fourth element each.
template <class Stored>
PL_DEVICE float score_key(const AttentionKernelParams& p, const KvSlot<Stored>& slot,
                          const float* query) {
  float sums[4] = {};
  for (int64_t d = 0; d < p.kv.head_dim; ++d) {
    const float key = element_value(slot.key[d * p.kv.block_size]);
    sums[d % 4] = fused_multiply_add(query[d], key, sums[d % 4]);
  }
  float dot = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  if constexpr (kHasScales<Stored>) dot = dot * *slot.key_scale;
  const float score = dot * p.scale;
  return p.soft_cap > 0.0f ? hyperbolic_tangent(score / p.soft_cap) * p.soft_cap : score;
}

// Makes the weights of the chunk in shared memory. Returns its maximum and the sum of its
// exponentials.
template <class Stored>
PL_DEVICE SoftmaxState weigh_chunk(const AttentionKernelParams& p, const AttentionRow& row,
                                   const ChunkRange& chunk, AttentionShared& shared) {
  const int64_t own = thread_index();
  const bool is_visible = own >= chunk.begin && own < chunk.end;
  KvSlot<Stored> slot{};
  if (is_visible) {
    slot = slot_of<Stored>(p, row, chunk.first_position + own);
    shared.scores[own] = score_key(p, slot, shared.query);
  }
  sync_threads();
  SoftmaxState state;
  for (int64_t i = chunk.begin; i < chunk.end; ++i) {
    state.max = Maximum::combine(state.max, shared.scores[i]);
  }
  if (is_visible) {
    const float share = exponential(shared.scores[own] - state.max);
    shared.exponentials[own] = share;
    shared.weights[own] = kHasScales<Stored> ? share * *slot.value_scale : share;
  }
  sync_threads();
  for (int64_t i = chunk.begin; i < chunk.end; ++i) state.sum = state.sum + shared.exponentials[i];
  return state;
}

// The chunk's weighted sum of element d of the values, block after block.
template <class Stored>
PL_DEVICE float mix_values(const AttentionKernelParams& p, const AttentionRow& row,
                           const ChunkRange& chunk, const AttentionShared& shared, int64_t d) {
  float sum = 0.0f;
  for (int64_t i = chunk.begin; i < chunk.end;) {
    const int64_t position = chunk.first_position + i;
    const Stored* value = slot_of<Stored>(p, row, position).value + d;
    const int64_t block_end = i + p.kv.block_size - position % p.kv.block_size;
    const int64_t end = block_end < chunk.end ? block_end : chunk.end;
    for (; i < end; ++i, value += p.kv.head_dim) {
      sum = fused_multiply_add(shared.weights[i], element_value(*value), sum);
    }
  }
  return sum;
}

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
    const AttentionRow row = p.rows[block_index().x];
    const int64_t head = row.row * p.q.heads + block_index().y;
    const float* const query = p.q.head(head);
    for (int64_t d = thread_index(); d < p.kv.head_dim; d += kThreads) shared.query[d] = query[d];
    sync_threads();
    SoftmaxState state;
    float values[kValuesPerThread] = {};
    for (int64_t chunk = row.first / kChunkKeys; chunk * kChunkKeys < row.end; ++chunk) {
      add_chunk(p, row, range_of(row, chunk), shared, state, values);
    }
    float* const out = p.out.head(head);
    for (int64_t i = 0, d = thread_index(); d < p.kv.head_dim; ++i, d += kThreads) {
      out[d] = values[i] / state.sum;
    }
    if (thread_index() > 0 || p.log_sum_exp.first == nullptr) return;
    const double log = logarithm(static_cast<double>(state.sum)) + static_cast<double>(state.max);
    p.log_sum_exp.row(row.row)[block_index().y] = static_cast<float>(log);
  }

 private:
  PL_DEVICE static ChunkRange range_of(const AttentionRow& row, int64_t chunk) {
    const int64_t first = chunk * kChunkKeys;
    const int64_t begin = row.first > first ? row.first - first : 0;
    const int64_t end = row.end - first;
    return {first, begin, end < kChunkKeys ? end : kChunkKeys};
  }

  // Merges a chunk's results with those of the chunks before it.
  PL_DEVICE static void add_chunk(const Params& p, const AttentionRow& row, const ChunkRange& chunk,
                                  Shared& shared, SoftmaxState& state,
                                  float (&values)[kValuesPerThread]) {
    const SoftmaxState added = weigh_chunk<Stored>(p, row, chunk, shared);
    const float max = Maximum::combine(added.max, state.max);
    const float old_share = exponential(state.max - max), new_share = exponential(added.max - max);
    state = {max, fused_multiply_add(added.sum, new_share, state.sum * old_share)};
    for (int64_t i = 0, d = thread_index(); d < p.kv.head_dim; ++i, d += kThreads) {
      const float sum = mix_values<Stored>(p, row, chunk, shared, d);
      values[i] = fused_multiply_add(sum, new_share, values[i] * old_share);
    }
  }
};

// Multiplies each head by the share that an attention sink leaves it.
struct ApplySinks {
  static constexpr std::string_view kName = "apply_sinks";
  static constexpr uint32_t kThreads = kWarpLanes;
  struct Params {
    ConstRows log_sum_exp;
    const float* sinks = nullptr;  // of the heads, along y of the grid
    Heads out;
    int64_t head_dim = 0;
  };
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const uint32_t head = block_index().y;
    const float share = sigmoid(p.log_sum_exp.row(block_index().x)[head] - p.sinks[head]);
    float* const out = p.out.head(int64_t{block_index().x} * p.out.heads + head);
    for (int64_t d = thread_index(); d < p.head_dim; d += kThreads) out[d] = out[d] * share;
  }
};

}  // namespace paceline::cuda
