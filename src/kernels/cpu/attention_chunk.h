// One chunk of attention: scores, their softmax and the weighted values, for the rows that see it.
// A pair's arithmetic is the same alone or beside others: tiles only share loads.
#pragma once

#include "kernels/cpu/attention_weights.h"
#include "kernels/cpu/small_product.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

// Scores of the pairs [first, first + pairs), whose keys begin and end later from pair to pair.
// Covers whole vectors of keys; keys that a pair doesn't see are dropped afterwards.
PL_INLINE void score_pairs(const AttentionTask& task, const TileBuffers& buffers, int64_t first,
                           int64_t pairs) {
  const int64_t begin = buffers.visible[first].begin / kLanes;
  const int64_t end = round_up(buffers.visible[first + pairs - 1].end, kLanes) / kLanes;
  multiply_small<Start::zero>(end - begin, pairs,
                              {.a = buffers.queries + first * task.head_dim,
                               .a_stride = task.head_dim,
                               .b = buffers.widened + begin * kLanes,
                               .b_stride = kChunkLength,
                               .depth = task.head_dim,
                               .out = buffers.scores + first * kChunkLength + begin * kLanes,
                               .out_stride = kChunkLength});
}

// Turns scores into exponentials in place.
PL_INLINE MaxAndSum exponentiate(const AttentionTask& task, KeyRange keys, float* scores) {
  Vec weights[kChunkVectors];
  const MaxAndSum result = exponentials(task, keys, scores, weights);
#pragma GCC unroll 4
  for (int v = 0; v < kChunkVectors; ++v) store(scores + v * kLanes, weights[v]);
  return result;
}

// Adds keys [begin, end) of `pairs` pairs to their weighted values.
PL_INLINE void add_values(const AttentionTask& task, const TileBuffers& buffers, float* values,
                          int64_t begin, int64_t end, int64_t first, int64_t pairs) {
  if (begin >= end) return;
  const int64_t padded = padded_value_dim(task);
  multiply_small<Start::out>(padded / kLanes, pairs,
                             {.a = buffers.scores + first * kChunkLength + begin,
                              .a_stride = kChunkLength,
                              .b = buffers.widened + begin * padded,
                              .b_stride = padded,
                              .depth = end - begin,
                              .out = values + first * padded,
                              .out_stride = padded});
}

// The weighted values of a few pairs, keys ascending: keys that all see together, the edges pair by
// pair.
PL_INLINE void weigh_pairs(const AttentionTask& task, const TileBuffers& buffers, float* values,
                           int64_t first, int64_t pairs) {
  const KeyRange* const visible = buffers.visible;
  const int64_t end = first + pairs;
  const int64_t shared_begin = visible[end - 1].begin, shared_end = visible[first].end;
  if (shared_begin >= shared_end) {
    for (int64_t pair = first; pair < end; ++pair) {
      add_values(task, buffers, values, visible[pair].begin, visible[pair].end, pair, 1);
    }
    return;
  }
  for (int64_t pair = first; pair < end; ++pair) {
    add_values(task, buffers, values, visible[pair].begin, shared_begin, pair, 1);
  }
  add_values(task, buffers, values, shared_begin, shared_end, first, pairs);
  for (int64_t pair = first; pair < end; ++pair) {
    add_values(task, buffers, values, shared_end, visible[pair].end, pair, 1);
  }
}

PL_INLINE PairRange find_visible(const AttentionTask& task, const TileBuffers& buffers,
                                 int64_t chunk, RowRange rows) {
  const PairRange pairs = {rows.begin * task.group, rows.end * task.group};
  int64_t next = pairs.begin;
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const KeyRange keys = visible_keys(task, row, chunk);
    for (int64_t head = 0; head < task.group; ++head) buffers.visible[next++] = keys;
  }
  return pairs;
}

static void score_chunk(const AttentionTask& task, const TileBuffers& buffers, PairRange pairs) {
  for (int64_t pair = pairs.begin; pair < pairs.end; pair += kTilePairs) {
    score_pairs(task, buffers, pair, min_of(kTilePairs, pairs.end - pair));
  }
}

static void add_position_scores_of_chunk(const AttentionTask& task, const TileBuffers& buffers,
                                         PairRange pairs, int64_t kv_head, int64_t chunk) {
  for (int64_t pair = pairs.begin; pair < pairs.end; ++pair) {
    add_position_scores(task, pair / task.group, kv_head * task.group + pair % task.group, chunk,
                        buffers.visible[pair], buffers.scores + pair * kChunkLength);
  }
}

static void exponentiate_chunk(const AttentionTask& task, const TileBuffers& buffers,
                               PairRange pairs, const Partial& partial) {
  for (int64_t pair = pairs.begin; pair < pairs.end; ++pair) {
    const MaxAndSum result =
        exponentiate(task, buffers.visible[pair], buffers.scores + pair * kChunkLength);
    partial.max[pair] = result.max;
    partial.sum[pair] = result.sum;
  }
}

static void weigh_chunk(const AttentionTask& task, const TileBuffers& buffers, PairRange pairs,
                        const Partial& partial) {
  const int64_t padded = padded_value_dim(task);
  for (int64_t i = pairs.begin * padded; i < pairs.end * padded; i += kLanes) {
    store(partial.values + i, Vec{});
  }
  for (int64_t pair = pairs.begin; pair < pairs.end; pair += kTilePairs) {
    weigh_pairs(task, buffers, partial.values, pair, min_of(kTilePairs, pairs.end - pair));
  }
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
