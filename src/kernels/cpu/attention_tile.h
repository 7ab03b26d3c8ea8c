// What a tile of attention knows about itself: its buffers, and which rows see which keys of a
// chunk.
#pragma once

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/vec.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

// A pair is one head of one row: pair = row * group + head.
PL_INLINE int64_t num_pairs(const AttentionTask& task) { return task.num_rows * task.group; }
PL_INLINE int64_t padded_head_dim(int64_t head_dim) { return round_up(head_dim, kLanes); }

// Keys [begin, end) of a chunk, counted from its first position.
struct KeyRange {
  int64_t begin;
  int64_t end;
};

PL_INLINE int64_t first_visible(const AttentionTask& task, int64_t row) {
  const int64_t position = task.first_position + row;
  return task.window > 0 ? max_of(0, position - task.window + 1) : 0;
}

PL_INLINE KeyRange visible_keys(const AttentionTask& task, int64_t row, int64_t chunk) {
  const int64_t start = chunk * kChunkLength;
  return {max_of(first_visible(task, row) - start, 0),
          min_of(task.first_position + row + 1 - start, kChunkLength)};
}

// The rows [begin, end) that see anything of a chunk: later rows begin and end later.
struct RowRange {
  int64_t begin;
  int64_t end;
};

PL_INLINE RowRange rows_of_chunk(const AttentionTask& task, int64_t chunk) {
  const int64_t start = chunk * kChunkLength;
  const int64_t begin = max_of(0, start - task.first_position);
  if (task.window == 0) return {begin, task.num_rows};
  const int64_t first_beyond = start + kChunkLength + task.window - 1;
  return {begin, min_of(task.num_rows, first_beyond - task.first_position)};
}

PL_INLINE int64_t first_chunk(const AttentionTask& task) {
  return first_visible(task, 0) / kChunkLength;
}
PL_INLINE int64_t last_chunk(const AttentionTask& task) {
  return (task.first_position + task.num_rows - 1) / kChunkLength;
}

// Softmax over some keys: per pair their maximum, the sum of exp(score - maximum), and the values
// weighted with those.
struct Partial {
  float* max;     // [pairs]
  float* sum;     // [pairs]
  float* values;  // [pairs][padded head_dim]
};

PL_INLINE int64_t partial_floats(int64_t head_dim, int64_t pairs) {
  return 2 * round_up(pairs, kLanes) + pairs * padded_head_dim(head_dim);
}

PL_INLINE Partial partial_at(float* floats, int64_t pairs) {
  const int64_t padded = round_up(pairs, kLanes);
  return {floats, floats + padded, floats + 2 * padded};
}

// One thread's buffers for a tile.
struct TileBuffers {
  float* keys;     // [head_dim][kChunkLength]
  float* values;   // [kChunkLength][padded head_dim]
  float* queries;  // [pairs][head_dim]
  float* scores;   // [pairs][kChunkLength], then their exponentials
  Partial chunk;
  Partial total;
};

PL_INLINE int64_t scratch_floats(int64_t head_dim, int64_t pairs) {
  const int64_t chunk = kChunkLength * (head_dim + padded_head_dim(head_dim));
  return chunk + pairs * (padded_head_dim(head_dim) + kChunkLength) +
         2 * partial_floats(head_dim, pairs);
}

PL_INLINE TileBuffers tile_buffers(const AttentionTask& task) {
  const int64_t pairs = num_pairs(task), padded = padded_head_dim(task.head_dim);
  TileBuffers buffers = {};
  buffers.keys = task.scratch;
  buffers.values = buffers.keys + task.head_dim * kChunkLength;
  buffers.queries = buffers.values + kChunkLength * padded;
  buffers.scores = buffers.queries + pairs * padded;
  float* const partials = buffers.scores + pairs * kChunkLength;
  buffers.chunk = partial_at(partials, pairs);
  buffers.total = partial_at(partials + partial_floats(task.head_dim, pairs), pairs);
  return buffers;
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
