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
