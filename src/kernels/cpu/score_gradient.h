// What the kernels of attention's gradients share: which rows see which keys of a tile, and the
// gradient of a score.
#pragma once

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/vec_math.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

// Rows of a tile; fewer in a sequence's last one.
PL_INLINE int64_t tile_rows(const AttentionGradientTask& task, int64_t tile) {
  return min_of(kGradientTile, task.num_rows - tile * kGradientTile);
}

// The end of the rows that see any key of the tile.
PL_INLINE int64_t end_of_rows(const AttentionGradientTask& task, int64_t key_tile) {
  const int64_t last_key = key_tile * kGradientTile + tile_rows(task, key_tile) - 1;
  return task.window > 0 ? min_of(task.num_rows, last_key + task.window) : task.num_rows;
}
// The first tile of keys that any row of the tile sees.
PL_INLINE int64_t first_key_tile(const AttentionGradientTask& task, int64_t row_tile) {
  const int64_t first_row = row_tile * kGradientTile;
  return task.window > 0 ? max_of(0, first_row - task.window + 1) / kGradientTile : 0;
}

// Lanes [begin, end) of a row of a tile.
struct LaneRange {
  int64_t begin;
  int64_t end;
};

// The rows of a tile that begins at row `first`, as lanes, that see a key.
PL_INLINE LaneRange rows_that_see(const AttentionGradientTask& task, int64_t key, int64_t first) {
  const int64_t end = task.window > 0 ? min_of(task.num_rows, key + task.window) : task.num_rows;
  return {max_of(key - first, 0), min_of(end - first, kGradientTile)};
}

// `value` in the lanes of a range, counted from that of the first one of the vector; else 0.
PL_INLINE Vec keep_lanes(Vec value, LaneRange lanes, int64_t first) {
  const Ints index = lane_indices() + static_cast<int32_t>(first);
  const Ints is_kept =
      (index >= static_cast<int32_t>(lanes.begin)) & (index < static_cast<int32_t>(lanes.end));
  return is_kept ? value : Vec{};
}

// A weight of the softmax, and the derivative of the loss by the product of query and key.
struct ScoreGradient {
  Vec weight;
  Vec gradient;
};

// `score` is the product of query and key; `value_gradient` that of the output's gradient and the
// value.
PL_INLINE ScoreGradient score_gradient(const AttentionGradientTask& task, Vec score,
                                       Vec value_gradient, Vec log_sum, Vec mean) {
  Vec scaled = score * task.scale;
  Vec slope = splat(task.scale);
  if (task.soft_cap > 0.0f) {
    const Vec bent = tanh(scaled / task.soft_cap);
    scaled = bent * task.soft_cap;
    slope = (1.0f - bent * bent) * task.scale;
  }
  const Vec weight = exp(scaled - log_sum);
  return {weight, weight * (value_gradient - mean) * slope};
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
