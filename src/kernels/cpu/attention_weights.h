// The exponentials of a pair's scores for a chunk of keys: its weights before they are normalised.
#pragma once

#include "kernels/cpu/attention_tile.h"
#include "kernels/cpu/vec_math.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

constexpr int kChunkVectors = static_cast<int>(kChunkLength) / kLanes;

struct MaxAndSum {
  float max;
  float sum;
};

// Adds what positions add to the scores of one query for a chunk of keys.
PL_INLINE void add_position_scores(const AttentionTask& task, int64_t row, int64_t head,
                                   int64_t chunk, KeyRange keys, float* scores) {
  const PositionScoreTask& added = task.position_scores;
  const int64_t first = chunk * kChunkLength;
  if (added.by_distance != nullptr) {
    const float* const from = added.by_distance + head * added.by_distance_stride + first -
                              row * added.by_distance_row_step;
    for (int64_t i = 0; i < kChunkLength; i += kLanes) {
      store(scores + i, load(scores + i) + load(from + i));
    }
  }
  if (added.of_queries != nullptr) {
    const float* const from =
        added.of_queries + row * added.of_queries_row_stride + head * added.of_queries_head_stride;
    const int32_t* const buckets = added.buckets + first - row;
    for (int64_t i = keys.begin; i < keys.end; ++i) scores[i] += from[buckets[i]];
  }
  if (added.of_keys != nullptr) {
    const float* const from =
        added.of_keys + first * added.of_keys_row_stride + head * added.of_keys_head_stride;
    const int32_t* const buckets = added.buckets + first - row;
    for (int64_t i = keys.begin; i < keys.end; ++i) {
      scores[i] += from[i * added.of_keys_row_stride + buckets[i]];
    }
  }
}

// Lanes are summed by absolute position; masked keys count as -infinity, so their weights are 0.
PL_INLINE MaxAndSum exponentials(const AttentionTask& task, KeyRange keys, const float* scores,
                                 Vec (&weights)[kChunkVectors]) {
#pragma GCC unroll 4
  for (int v = 0; v < kChunkVectors; ++v) weights[v] = load(scores + v * kLanes) * task.scale;
  if (task.soft_cap > 0.0f) {
    for (Vec& weight : weights) weight = tanh(weight / task.soft_cap) * task.soft_cap;
  }
  if (keys.begin > 0 || keys.end < kChunkLength) {
    const Vec hidden = splat(-__builtin_inff());
    for (int v = 0; v < kChunkVectors; ++v) {
      const Ints index = lane_indices() + v * kLanes;
      weights[v] = index < keys.begin ? hidden : weights[v];
      weights[v] = index < keys.end ? weights[v] : hidden;
    }
  }
  Vec maxima = weights[0];
#pragma GCC unroll 4
  for (int v = 1; v < kChunkVectors; ++v) maxima = max(maxima, weights[v]);
  const float top = reduce_max(maxima);
  Vec sums = {};
#pragma GCC unroll 4
  for (int v = 0; v < kChunkVectors; ++v) {
    weights[v] = exp(weights[v] - top);
    sums = sums + weights[v];
  }
  return {top, reduce_add(sums)};
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
