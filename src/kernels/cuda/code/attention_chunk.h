// Attention of one row and head over one chunk of keys: 128 absolute positions give a maximum, a
// sum of exponentials and weighted values of their own.
#pragma once

#include "kernels/cuda/code/block_reduce.h"
#include "kernels/cuda/code/elementwise.h"
#include "kernels/cuda/code/kv_blocks.h"
#include "kernels/cuda/code/rows.h"

namespace paceline::cuda {

constexpr int64_t kChunkKeys = 128;
constexpr uint32_t kAttentionThreads = 128;
constexpr int64_t kMostHeadDim = 512;
constexpr int kValuesPerThread = kMostHeadDim / kAttentionThreads;

// One row: the positions that it sees, and its sequence's blocks.
struct AttentionRow {
  int64_t row = 0;
  int64_t first = 0;  // visible position
  int64_t end = 0;    // behind the last
  int64_t table = 0;  // where its block table begins in `tables`
};

// Rows times the heads of a kv head, packed: those of each row side by side.
struct AttentionTile {
  int64_t first_row = 0;  // in `rows`; consecutive positions of one sequence
  int32_t skipped = 0;    // heads of that row
  int32_t count = 0;      // of packed rows
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
  // The results of chunks apart: [rows, heads, most_chunks] times kPartialHead numbers, a maximum
  // and a sum among them, and head_dim values.
  float* partials = nullptr;
  int64_t most_chunks = 0;  // of a row
  int32_t chunks_of_block = 1;
  // Of attention in tiles (attention_tiles.h): along x of the grid, kv heads along y. Null: each
  // row has tiles of its own.
  const AttentionTile* tiles = nullptr;
  uint32_t block_bits = 0;  // log2 of the block size
};

// Where the results of a chunk of a row and head stand, the chunk counted from the row's first.
constexpr int64_t kPartialHead = 4;
PL_DEVICE float* partial_of(const AttentionKernelParams& p, int64_t row, int64_t head,
                            int64_t index) {
  return p.partials +
         ((row * p.q.heads + head) * p.most_chunks + index) * (kPartialHead + p.kv.head_dim);
}

struct AttentionShared {
  float query[kMostHeadDim];
  // Of the keys of a chunk.
  float scores[kChunkKeys];
  float exponentials[kChunkKeys];  // of the score less the chunk's maximum
  float weights[kChunkKeys];       // the exponential, times the value's scale where there is one
};

// Scores are in powers of two: a score's exponential is 2 to the score times log2 e.
constexpr float kLog2E = 0x1.715476p+0f;
constexpr double kLn2 = 0x1.62e42fefa39efp-1;

// Of one chunk, or of those up to some position.
struct SoftmaxState {
  float max = -kInfinity;  // a power of two
  float sum = 0.0f;
};

// What chunks up to some position and the next one are multiplied by when they are added.
struct MergeShares {
  float old_share;
  float new_share;

  PL_DEVICE float merge(float added, float old) const {
    return fused_multiply_add(added, new_share, old * old_share);
  }
};
PL_DEVICE MergeShares merge_softmax(const SoftmaxState& added, SoftmaxState& state) {
  const float max = Maximum::combine(added.max, state.max);
  const MergeShares shares = {power_of_two(state.max - max), power_of_two(added.max - max)};
  state = {max, shares.merge(added.sum, state.sum)};
  return shares;
}

PL_DEVICE float log_of_sum(const SoftmaxState& state) {
  const double log = logarithm(static_cast<double>(state.sum));
  return static_cast<float>(log + static_cast<double>(state.max) * kLn2);
}

// A score from the dot product of a query and a key, as a power of two.
PL_DEVICE float capped(float score, float cap) { return hyperbolic_tangent(score / cap) * cap; }
PL_DEVICE float score_of(const AttentionKernelParams& p, float dot) {
  const float score = dot * p.scale;
  return (p.soft_cap > 0.0f ? capped(score, p.soft_cap) : score) * kLog2E;
}

// The visible positions of a chunk, from its first.
struct ChunkRange {
  int64_t first_position;
  int64_t begin;
  int64_t end;
};

PL_DEVICE ChunkRange chunk_range(const AttentionRow& row, int64_t chunk) {
  const int64_t first = chunk * kChunkKeys;
  const int64_t begin = row.first > first ? row.first - first : 0;
  const int64_t end = row.end - first;
  return {first, begin, end < kChunkKeys ? end : kChunkKeys};
}

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
  for (int64_t first = 0; first < p.kv.head_dim; first += 4) {
    for (int i = 0; i < 4; ++i) {
      const int64_t d = first + i;
      if (d >= p.kv.head_dim) break;
      const float key = element_value(slot.key[d * p.kv.block_size]);
      sums[i] = fused_multiply_add(query[d], key, sums[i]);
    }
  }
  float dot = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  if constexpr (kHasScales<Stored>) dot = dot * *slot.key_scale;
  return score_of(p, dot);
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
    const float share = power_of_two(shared.scores[own] - state.max);
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

// Calls body(i, d) for the elements of a head that this thread has: every 128th, a fixed number of
// turns so that what body indexes by i stays in registers.
template <class Body>
PL_DEVICE void for_own_elements(int64_t head_dim, Body&& body) {
  for (int i = 0; i < kValuesPerThread; ++i) {
    const int64_t d = int64_t{thread_index()} + i * int64_t{kAttentionThreads};
    if (d < head_dim) body(i, d);
  }
}

// Loads the query into shared memory.
PL_DEVICE void load_query(const AttentionKernelParams& p, const AttentionRow& row,
                          AttentionShared& shared) {
  const float* const query = p.q.head(row.row, block_index().y);
  for_own_elements(p.kv.head_dim, [&](int, int64_t d) { shared.query[d] = query[d]; });
  sync_threads();
}

}  // namespace paceline::cuda
