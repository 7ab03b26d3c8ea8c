// A tile of attention: its buffers, and which rows see which keys of a chunk.
#pragma once

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/vec.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

// A pair is one query head of one row, on one kv head: pair = row * group + head.
PL_INLINE int64_t num_pairs(const AttentionTask& task) { return task.num_rows * task.group; }
PL_INLINE int64_t padded_head_dim(int64_t head_dim) { return round_up(head_dim, kLanes); }
PL_INLINE int64_t padded_value_dim(const AttentionTask& task) {
  return padded_head_dim(task.value_dim);
}
PL_INLINE bool has_values_in_keys(const AttentionTask& task) { return task.values == nullptr; }

// Keys [begin, end) of a chunk, counted from its first position.
struct KeyRange {
  int32_t begin;
  int32_t end;
};

PL_INLINE int64_t first_visible(const AttentionTask& task, int64_t row) {
  const int64_t position = task.first_position + row;
  if (task.chunked) return position - position % task.window;
  return task.window > 0 ? max_of(0, position - task.window + 1) : 0;
}

PL_INLINE int64_t end_visible(const AttentionTask& task, int64_t row) {
  const int64_t position = task.first_position + row;
  if (task.num_keys == 0) return position + 1;
  return task.window > 0 ? min_of(position + task.window, task.num_keys) : task.num_keys;
}

PL_INLINE KeyRange visible_keys(const AttentionTask& task, int64_t row, int64_t chunk) {
  const int64_t start = chunk * kChunkLength;
  return {static_cast<int32_t>(max_of(first_visible(task, row) - start, 0)),
          static_cast<int32_t>(min_of(end_visible(task, row) - start, kChunkLength))};
}

// The rows [begin, end) that see anything of a chunk: later rows don't begin or end earlier.
struct RowRange {
  int64_t begin;
  int64_t end;
};

// Pairs [begin, end) of the rows that see a chunk.
struct PairRange {
  int64_t begin;
  int64_t end;
};

PL_INLINE RowRange rows_of_chunk(const AttentionTask& task, int64_t chunk) {
  const int64_t start = chunk * kChunkLength;
  // How far behind its own position a row sees.
  const int64_t ahead = task.num_keys == 0 ? 0 : task.window > 0 ? task.window - 1 : task.num_keys;
  const int64_t begin = max_of(0, start - ahead - task.first_position);
  if (task.window == 0) return {begin, task.num_rows};
  const int64_t end = start + kChunkLength;
  const int64_t first_beyond = task.chunked ? round_up(end, task.window) : end + task.window - 1;
  return {begin, min_of(task.num_rows, first_beyond - task.first_position)};
}

PL_INLINE int64_t first_chunk(const AttentionTask& task) {
  return first_visible(task, 0) / kChunkLength;
}
PL_INLINE int64_t last_chunk(const AttentionTask& task) {
  return (end_visible(task, task.num_rows - 1) - 1) / kChunkLength;
}

// Softmax over some keys: per pair their maximum, the sum of exp(score - maximum), and the values
// weighted with those.
struct Partial {
  float* max;     // [pairs]
  float* sum;     // [pairs]
  float* values;  // [pairs][padded value_dim]
};

PL_INLINE int64_t partial_floats(int64_t value_dim, int64_t pairs) {
  return 2 * round_up(pairs, kLanes) + pairs * padded_head_dim(value_dim);
}

PL_INLINE Partial partial_at(float* floats, int64_t pairs) {
  const int64_t padded = round_up(pairs, kLanes);
  return {floats, floats + padded, floats + 2 * padded};
}

// One thread's buffers for one kv head of a tile; only `queries` and `total` are the head's own.
struct TileBuffers {
  // First the chunk's keys, [head_dim][kChunkLength], then its values, [kChunkLength][padded
  // value_dim]: one at a time stays in the first-level cache.
  float* widened;
  float* scores;      // [pairs][kChunkLength], then their exponentials
  KeyRange* visible;  // [pairs], of the current chunk
  Partial chunk;
  float* queries;  // [pairs][head_dim]
  Partial total;
};

// Sizes in floats.
struct ScratchLayout {
  int64_t widened, scores, visible, partial, queries;

  PL_INLINE ScratchLayout of(const AttentionTask& task) {
    const int64_t pairs = num_pairs(task), padded = padded_head_dim(task.head_dim);
    static_assert(sizeof(KeyRange) == 2 * sizeof(float));
    return {kChunkLength * padded, kChunkLength * pairs, round_up(2 * pairs, kLanes),
            partial_floats(task.value_dim, pairs), pairs * padded};
  }
};

PL_INLINE int64_t scratch_floats(const AttentionTask& task) {
  const ScratchLayout layout = ScratchLayout::of(task);
  return layout.widened + layout.scores + layout.visible + layout.partial +
         task.num_kv_heads * (layout.queries + layout.partial);
}

PL_INLINE TileBuffers tile_buffers(const AttentionTask& task, int64_t kv_head) {
  const ScratchLayout layout = ScratchLayout::of(task);
  const int64_t pairs = num_pairs(task);
  TileBuffers buffers = {};
  auto* next = static_cast<float*>(task.scratch);
  buffers.widened = next;
  buffers.scores = next += layout.widened;
  void* const visible = next += layout.scores;
  buffers.visible = static_cast<KeyRange*>(visible);
  buffers.chunk = partial_at(next += layout.visible, pairs);
  next += layout.partial + kv_head * (layout.queries + layout.partial);
  buffers.queries = next;
  buffers.total = partial_at(next + layout.queries, pairs);
  return buffers;
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
