// One chunk of attention: scores, their softmax and the weighted values, for the rows that see it.
// What is done for a pair is the same alone or beside others: tiles only share loads.
#pragma once

#include "kernels/cpu/attention_tile.h"
#include "kernels/cpu/vec_math.h"

namespace paceline::PACELINE_ISA_NAMESPACE {
namespace {

constexpr int kTilePairs = 6;
constexpr int kTileVectors = kAccumulators / kTilePairs;

// out[p][v] (+)= sum over i, ascending, of a[p][i] * b[i][v].
struct SmallProduct {
  const float* a;
  int64_t a_stride;
  const float* b;
  int64_t b_stride;
  int64_t depth;
  float* out;
  int64_t out_stride;
};

enum class Start { zero, out };

template <Start kStart, int kPairs, int kVectors>
void multiply_tile(const SmallProduct& product) {
  const float* a = product.a;
  const float* b = product.b;
  const int64_t a_stride = product.a_stride;
  Vec sums[kPairs][kVectors] = {};
  if constexpr (kStart == Start::out) {
#pragma GCC unroll 6
    for (int p = 0; p < kPairs; ++p) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        sums[p][v] = load(product.out + p * product.out_stride + v * kLanes);
      }
    }
  }
  for (int64_t i = 0; i < product.depth; ++i) {
    Vec right[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) right[v] = load(b + v * kLanes);
#pragma GCC unroll 6
    for (int p = 0; p < kPairs; ++p) {
      const Vec left = splat(a[p * a_stride]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[p][v] = fma(left, right[v], sums[p][v]);
    }
    ++a;
    b += product.b_stride;
  }
#pragma GCC unroll 6
  for (int p = 0; p < kPairs; ++p) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      store(product.out + p * product.out_stride + v * kLanes, sums[p][v]);
    }
  }
}

template <Start kStart, int kVectors, int kPairs = kTilePairs>
void multiply_pairs(int64_t pairs, const SmallProduct& product) {
  if constexpr (kPairs > 0) {
    if (pairs == kPairs) {
      multiply_tile<kStart, kPairs, kVectors>(product);
    } else {
      multiply_pairs<kStart, kVectors, kPairs - 1>(pairs, product);
    }
  }
}

template <Start kStart, int kVectors = kTileVectors>
void multiply_upto(int64_t vectors, int64_t pairs, const SmallProduct& product) {
  if constexpr (kVectors > 0) {
    if (vectors == kVectors) {
      multiply_pairs<kStart, kVectors>(pairs, product);
    } else {
      multiply_upto<kStart, kVectors - 1>(vectors, pairs, product);
    }
  }
}

// All columns of at most kTilePairs pairs.
template <Start kStart>
void multiply_small(int64_t num_vectors, int64_t pairs, SmallProduct product) {
  while (num_vectors > 0) {
    const int64_t vectors = min_of(num_vectors, kTileVectors);
    multiply_upto<kStart>(vectors, pairs, product);
    product.b += vectors * kLanes;
    product.out += vectors * kLanes;
    num_vectors -= vectors;
  }
}

// Scores of the pairs [first, first + pairs): of whole vectors of keys; what a row doesn't see is
// dropped later.
PL_INLINE void score_pairs(const AttentionTask& task, const TileBuffers& buffers, int64_t chunk,
                           int64_t first, int64_t pairs) {
  const int64_t last_row = (first + pairs - 1) / task.group;
  const int64_t begin = visible_keys(task, first / task.group, chunk).begin / kLanes;
  const int64_t end = round_up(visible_keys(task, last_row, chunk).end, kLanes) / kLanes;
  multiply_small<Start::zero>(end - begin, pairs,
                              {.a = buffers.queries + first * task.head_dim,
                               .a_stride = task.head_dim,
                               .b = buffers.keys + begin * kLanes,
                               .b_stride = kChunkLength,
                               .depth = task.head_dim,
                               .out = buffers.scores + first * kChunkLength + begin * kLanes,
                               .out_stride = kChunkLength});
}

PL_INLINE Vec cap_scores(Vec scores, float cap) { return tanh(scores / cap) * cap; }

// Scores to exponentials in place; keys out of sight count as -infinity.
PL_INLINE void exponentiate(const AttentionTask& task, KeyRange keys, float* scores, float& max_out,
                            float& sum_out) {
  const Vec hidden = splat(-__builtin_inff());
  const Vec scale = splat(task.scale);
  const auto begin = static_cast<int32_t>(keys.begin), end = static_cast<int32_t>(keys.end);
  const int first = static_cast<int>(keys.begin) / kLanes;
  const int last = static_cast<int>(keys.end + kLanes - 1) / kLanes;
  Vec maxima = hidden;
  for (int v = first; v < last; ++v) {
    Vec score = load(scores + v * kLanes) * scale;
    if (task.soft_cap > 0.0f) score = cap_scores(score, task.soft_cap);
    const Ints index = lane_indices() + v * kLanes;
    score = index < begin ? hidden : score;
    score = index < end ? score : hidden;
    maxima = max(maxima, score);
    store(scores + v * kLanes, score);
  }
  const float top = reduce_max(maxima);
  const Vec shift = splat(top);
  // Lanes by absolute position; those out of sight add zero.
  Vec sums = {};
  for (int v = first; v < last; ++v) {
    const Vec weight = exp(load(scores + v * kLanes) - shift);
    sums = sums + weight;
    store(scores + v * kLanes, weight);
  }
  max_out = top;
  sum_out = reduce_add(sums);
}

// Adds keys [begin, end) of `pairs` pairs to their weighted values, which `chunk` holds so far.
PL_INLINE void add_values(const AttentionTask& task, const TileBuffers& buffers, float* values,
                          KeyRange keys, int64_t first, int64_t pairs) {
  if (keys.begin >= keys.end) return;
  const int64_t padded = padded_head_dim(task.head_dim);
  multiply_small<Start::out>(padded / kLanes, pairs,
                             {.a = buffers.scores + first * kChunkLength + keys.begin,
                              .a_stride = kChunkLength,
                              .b = buffers.values + keys.begin * padded,
                              .b_stride = padded,
                              .depth = keys.end - keys.begin,
                              .out = values + first * padded,
                              .out_stride = padded});
}

// The weighted values of a few pairs, keys ascending: the edges that not all see pair by pair, the
// middle together.
PL_INLINE void weigh_pairs(const AttentionTask& task, const TileBuffers& buffers, float* values,
                           int64_t chunk, int64_t first, int64_t pairs) {
  const int64_t last = first + pairs - 1;
  const KeyRange shared = {visible_keys(task, last / task.group, chunk).begin,
                           visible_keys(task, first / task.group, chunk).end};
  const bool is_shared = shared.begin < shared.end;
  for (int64_t pair = first; pair <= last; ++pair) {
    const KeyRange keys = visible_keys(task, pair / task.group, chunk);
    add_values(task, buffers, values, {keys.begin, is_shared ? shared.begin : keys.end}, pair, 1);
  }
  if (!is_shared) return;
  add_values(task, buffers, values, shared, first, pairs);
  for (int64_t pair = first; pair <= last; ++pair) {
    const KeyRange keys = visible_keys(task, pair / task.group, chunk);
    add_values(task, buffers, values, {shared.end, keys.end}, pair, 1);
  }
}

// The partial of one chunk, whose keys and values the buffers hold, for the pairs of `rows`.
void attend_chunk(const AttentionTask& task, const TileBuffers& buffers, int64_t chunk,
                  RowRange rows, const Partial& partial) {
  const int64_t begin = rows.begin * task.group, end = rows.end * task.group;
  for (int64_t pair = begin; pair < end; pair += kTilePairs) {
    score_pairs(task, buffers, chunk, pair, min_of(kTilePairs, end - pair));
  }
  for (int64_t pair = begin; pair < end; ++pair) {
    exponentiate(task, visible_keys(task, pair / task.group, chunk),
                 buffers.scores + pair * kChunkLength, partial.max[pair], partial.sum[pair]);
  }
  const int64_t padded = padded_head_dim(task.head_dim);
  for (int64_t i = begin * padded; i < end * padded; i += kLanes) store(partial.values + i, Vec{});
  for (int64_t pair = begin; pair < end; pair += kTilePairs) {
    weigh_pairs(task, buffers, partial.values, chunk, pair, min_of(kTilePairs, end - pair));
  }
}

}  // namespace
}  // namespace paceline::PACELINE_ISA_NAMESPACE
