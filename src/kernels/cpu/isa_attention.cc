// Attention over a paged store, in chunks of absolute positions whose partials combine in ascending
// order (the online softmax of Milakov and Gimelshein, 2018, with a fixed order).
#include "base/portable_math.h"
#include "kernels/cpu/attention_chunk.h"
#include "kernels/cpu/isa_kernels.h"

namespace paceline::PACELINE_ISA_NAMESPACE {
namespace {

template <class T>
PL_INLINE void widen_elements(const T* from, int64_t count, float* to) {
  for_each_vector(count, [&](int64_t i, int64_t num_lanes) {
    store_upto(to + i, load_upto(from + i, num_lanes), num_lanes);
  });
}

// [rows][count] elements with strides between rows; count is mostly a block's worth of lanes.
template <class T>
PL_INLINE void widen_rows(const T* from, int64_t from_stride, int64_t rows, int64_t count,
                          float* to, int64_t to_stride) {
  if (count == kLanes) {
#pragma GCC unroll 4
    for (int64_t row = 0; row < rows; ++row)
      store(to + row * to_stride, load(from + row * from_stride));
    return;
  }
  for (int64_t row = 0; row < rows; ++row) {
    widen_elements(from + row * from_stride, count, to + row * to_stride);
  }
}

// Slots of one block that hold keys of the current chunk.
struct SlotRun {
  int64_t block;
  int64_t offset;  // the first slot
  int64_t count;
  int64_t index;  // of the first key in the chunk
};

// Calls body(run) for the slots of the chunk's keys [keys.begin, keys.end).
template <class Body>
PL_INLINE void for_each_run(const AttentionTask& task, int64_t chunk, KeyRange keys, Body&& body) {
  for (int64_t index = keys.begin; index < keys.end;) {
    const int64_t position = chunk * kChunkLength + index;
    const int64_t offset = position % task.block_size;
    const int64_t count = min_of(task.block_size - offset, keys.end - index);
    body(SlotRun{task.block_table[position / task.block_size], offset, count, index});
    index += count;
  }
}

// The keys of a chunk that any of `rows` sees.
PL_INLINE KeyRange keys_of_rows(const AttentionTask& task, int64_t chunk, RowRange rows) {
  return {visible_keys(task, rows.begin, chunk).begin, visible_keys(task, rows.end - 1, chunk).end};
}

template <class T>
void widen_keys(const AttentionTask& task, int64_t kv_head, int64_t chunk, KeyRange keys,
                float* widened) {
  const T* const head = static_cast<const T*>(task.keys) + kv_head * task.key_head_stride;
  for_each_run(task, chunk, keys, [&](const SlotRun& run) {
    const T* const from = head + run.block * task.key_block_stride + run.offset;
    widen_rows(from, task.block_size, task.head_dim, run.count, widened + run.index, kChunkLength);
  });
}

template <class T>
void widen_values(const AttentionTask& task, int64_t kv_head, int64_t chunk, KeyRange keys,
                  float* widened) {
  const int64_t head_dim = task.head_dim, padded = padded_head_dim(head_dim);
  const T* const head = static_cast<const T*>(task.values) + kv_head * task.value_head_stride;
  for_each_run(task, chunk, keys, [&](const SlotRun& run) {
    const T* const from = head + run.block * task.value_block_stride + run.offset * head_dim;
    float* const to = widened + run.index * padded;
    if (padded == head_dim) {
      widen_elements(from, run.count * head_dim, to);
    } else {
      widen_rows(from, head_dim, run.count, head_dim, to, padded);
    }
  });
}

// The next call of attend_chunk: the next head, or the first head of the next chunk.
struct NextPart {
  int64_t kv_head;
  int64_t chunk;
  KeyRange keys;  // empty: there is no next call
};

PL_INLINE NextPart next_part(const AttentionTask& task, int64_t kv_head, int64_t chunk) {
  const bool is_last = kv_head + 1 == task.num_kv_heads;
  const NextPart next = {is_last ? 0 : kv_head + 1, is_last ? chunk + 1 : chunk, {0, 0}};
  if (next.chunk > last_chunk(task)) return next;
  const RowRange rows = rows_of_chunk(task, next.chunk);
  return {next.kv_head, next.chunk, keys_of_rows(task, next.chunk, rows)};
}

// Prefetches the part's pieces of blocks; `head` is block 0's. Blocks lie anywhere, so hardware
// prefetchers can't predict the next one.
template <class T>
PL_INLINE void prefetch_blocks(const AttentionTask& task, const NextPart& part, const T* head,
                               int64_t block_stride) {
  constexpr int64_t kLineElements = 64 / static_cast<int64_t>(sizeof(T));
  if (task.block_size > kChunkLength) return;
  for_each_run(task, part.chunk, part.keys, [&](const SlotRun& run) {
    const T* const from = head + run.block * block_stride;
    for (int64_t i = 0; i < task.block_size * task.head_dim; i += kLineElements) {
      __builtin_prefetch(from + i, 0, 2);
    }
  });
}

// Multiplies each pair's number for a key (a score made of key codes, or the weight of value codes)
// by the key's scale in `head_scales`.
PL_INLINE void apply_scales(const AttentionTask& task, const float* head_scales, int64_t chunk,
                            KeyRange keys, const TileBuffers& buffers, PairRange pairs) {
  float scales[kChunkLength] = {};
  for_each_run(task, chunk, keys, [&](const SlotRun& run) {
    const float* const from = head_scales + run.block * task.scale_block_stride + run.offset;
    widen_elements(from, run.count, scales + run.index);
  });
  for (int64_t pair = pairs.begin; pair < pairs.end; ++pair) {
    float* const scores = buffers.scores + pair * kChunkLength;
    for (int64_t i = 0; i < kChunkLength; i += kLanes) {
      store(scores + i, load(scores + i) * load(scales + i));
    }
  }
}

// Calls body(pair, row, query head of the task).
template <class Body>
PL_INLINE void for_each_pair(const AttentionTask& task, int64_t kv_head, Body&& body) {
  int64_t pair = 0;
  for (int64_t row = 0; row < task.num_rows; ++row) {
    for (int64_t i = 0; i < task.group; ++i) body(pair++, row, kv_head * task.group + i);
  }
}

void copy_queries(const AttentionTask& task, int64_t kv_head, float* queries) {
  for_each_pair(task, kv_head, [&](int64_t pair, int64_t row, int64_t head) {
    const float* const from = task.q + row * task.q_row_stride + head * task.q_head_stride;
    widen_elements(from, task.head_dim, queries + pair * task.head_dim);
  });
}

void clear_total(const AttentionTask& task, const Partial& total) {
  const int64_t pairs = num_pairs(task);
  for (int64_t pair = 0; pair < pairs; ++pair) {
    total.max[pair] = -__builtin_inff();
    total.sum[pair] = 0.0f;
  }
  const int64_t count = pairs * padded_head_dim(task.head_dim);
  for (int64_t i = 0; i < count; i += kLanes) store(total.values + i, Vec{});
}

// Both sides are scaled to the larger maximum, so one of the two factors is 1.
void combine(const AttentionTask& task, const Partial& chunk, RowRange rows, const Partial& total) {
  const int64_t padded = padded_head_dim(task.head_dim);
  for (int64_t pair = rows.begin * task.group; pair < rows.end * task.group; ++pair) {
    const bool is_larger = chunk.max[pair] > total.max[pair];
    const float difference = chunk.max[pair] - total.max[pair];
    const float factor = exp_one(is_larger ? -difference : difference);
    const float old_scale = is_larger ? factor : 1.0f;
    const float new_scale = is_larger ? 1.0f : factor;
    if (is_larger) total.max[pair] = chunk.max[pair];
    total.sum[pair] = total.sum[pair] * old_scale + chunk.sum[pair] * new_scale;
    float* const to = total.values + pair * padded;
    const float* const from = chunk.values + pair * padded;
    for (int64_t i = 0; i < padded; i += kLanes) {
      store(to + i, fma(load(from + i), splat(new_scale), load(to + i) * splat(old_scale)));
    }
  }
}

PL_INLINE float log_sum_exp_of(float max, float sum) {
  return static_cast<float>(portable_log(static_cast<double>(sum)) + static_cast<double>(max));
}

void write_out(const AttentionTask& task, int64_t kv_head, const Partial& total) {
  const int64_t padded = padded_head_dim(task.head_dim);
  for_each_pair(task, kv_head, [&](int64_t pair, int64_t row, int64_t head) {
    if (task.log_sum_exp != nullptr) {
      task.log_sum_exp[row * task.log_sum_exp_stride + head] =
          log_sum_exp_of(total.max[pair], total.sum[pair]);
    }
    float* const to = task.out + row * task.out_row_stride + head * task.out_head_stride;
    const Vec inverse = splat(1.0f / total.sum[pair]);
    for_each_vector(task.head_dim, [&](int64_t i, int64_t count) {
      store_upto(to + i, load(total.values + pair * padded + i) * inverse, count);
    });
  });
}

int64_t attention_scratch(const AttentionTask& task) { return scratch_floats(task); }
int64_t attention_partial(const AttentionTask& task) {
  return task.num_kv_heads * partial_floats(task.head_dim, num_pairs(task));
}
int64_t attention_num_chunks(const AttentionTask& task) {
  return last_chunk(task) - first_chunk(task) + 1;
}

// The partial of one chunk on one kv head, for the rows that see any of it.
template <class T>
void attend_chunk(const AttentionTask& task, const TileBuffers& buffers, int64_t kv_head,
                  int64_t chunk, const Partial& partial) {
  const RowRange rows = rows_of_chunk(task, chunk);
  const KeyRange keys = keys_of_rows(task, chunk, rows);
  const PairRange pairs = find_visible(task, buffers, chunk, rows);
  const int64_t scale_offset = kv_head * task.scale_head_stride;
  widen_keys<T>(task, kv_head, chunk, keys, buffers.widened);
  const NextPart next = next_part(task, kv_head, chunk);
  prefetch_blocks(task, next,
                  static_cast<const T*>(task.keys) + next.kv_head * task.key_head_stride,
                  task.key_block_stride);
  score_chunk(task, buffers, pairs);
  if constexpr (kHasScales<T>) {
    apply_scales(task, task.key_scales + scale_offset, chunk, keys, buffers, pairs);
  }
  exponentiate_chunk(task, buffers, pairs, partial);
  widen_values<T>(task, kv_head, chunk, keys, buffers.widened);
  if constexpr (kHasScales<T>) {
    apply_scales(task, task.value_scales + scale_offset, chunk, keys, buffers, pairs);
  }
  prefetch_blocks(task, next,
                  static_cast<const T*>(task.values) + next.kv_head * task.value_head_stride,
                  task.value_block_stride);
  weigh_chunk(task, buffers, pairs, partial);
}

// Loops over heads inside chunks, which reads the blocks of a chunk in the longest pieces.
template <class T>
void attention(const AttentionTask& task) {
  for (int64_t head = 0; head < task.num_kv_heads; ++head) {
    const TileBuffers buffers = tile_buffers(task, head);
    copy_queries(task, head, buffers.queries);
    clear_total(task, buffers.total);
  }
  for (int64_t chunk = first_chunk(task); chunk <= last_chunk(task); ++chunk) {
    for (int64_t head = 0; head < task.num_kv_heads; ++head) {
      const TileBuffers buffers = tile_buffers(task, head);
      attend_chunk<T>(task, buffers, head, chunk, buffers.chunk);
      combine(task, buffers.chunk, rows_of_chunk(task, chunk), buffers.total);
    }
  }
  for (int64_t head = 0; head < task.num_kv_heads; ++head) {
    write_out(task, head, tile_buffers(task, head).total);
  }
}

template <class T>
void attention_chunks(const AttentionTask& task, int64_t first, int64_t last, float* partials) {
  for (int64_t head = 0; head < task.num_kv_heads; ++head) {
    copy_queries(task, head, tile_buffers(task, head).queries);
  }
  const int64_t pairs = num_pairs(task);
  for (int64_t i = first; i < last; ++i) {
    for (int64_t head = 0; head < task.num_kv_heads; ++head) {
      attend_chunk<T>(task, tile_buffers(task, head), head, first_chunk(task) + i,
                      partial_at(partials, pairs));
      partials += partial_floats(task.head_dim, pairs);
    }
  }
}

void attention_combine(const AttentionTask& task, const float* partials) {
  const int64_t pairs = num_pairs(task);
  for (int64_t head = 0; head < task.num_kv_heads; ++head) {
    const Partial total = tile_buffers(task, head).total;
    const float* next = partials + head * partial_floats(task.head_dim, pairs);
    clear_total(task, total);
    for (int64_t chunk = first_chunk(task); chunk <= last_chunk(task); ++chunk) {
      const Partial partial = partial_at(const_cast<float*>(next), pairs);
      combine(task, partial, rows_of_chunk(task, chunk), total);
      next += attention_partial(task);
    }
    write_out(task, head, total);
  }
}

}  // namespace

void add_attention_kernels(KernelTable& table) {
  table.attention_scratch = attention_scratch;
  table.attention_partial = attention_partial;
  table.attention_num_chunks = attention_num_chunks;
  table.attention[0] = attention<float>;
  table.attention[1] = attention<F16>;
  table.attention[2] = attention<Bf16>;
  table.attention[3] = attention<int8_t>;
  table.attention_chunks[0] = attention_chunks<float>;
  table.attention_chunks[1] = attention_chunks<F16>;
  table.attention_chunks[2] = attention_chunks<Bf16>;
  table.attention_chunks[3] = attention_chunks<int8_t>;
  table.attention_combine = attention_combine;
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
