// How a task of attention walks over chunks of keys and the heads of a tile, and how the partials
// of chunks become outputs. What attends one chunk is a Head: one kv head of a task.
#pragma once

#include "base/portable_math.h"
#include "kernels/cpu/attention_tile.h"
#include "kernels/cpu/vec_math.h"

namespace paceline::PACELINE_ISA_NAMESPACE {
namespace {

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

// The part that is attended next: the next head, or the first head of the next chunk.
struct NextPart {
  int64_t kv_head;
  int64_t chunk;
  KeyRange keys;  // empty: there is none
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

// Calls body(pair, row, query head of the task).
template <class Body>
PL_INLINE void for_each_pair(const AttentionTask& task, int64_t kv_head, Body&& body) {
  int64_t pair = 0;
  for (int64_t row = 0; row < task.num_rows; ++row) {
    for (int64_t i = 0; i < task.group; ++i) body(pair++, row, kv_head * task.group + i);
  }
}

void clear_total(const AttentionTask& task, const Partial& total) {
  const int64_t pairs = num_pairs(task);
  for (int64_t pair = 0; pair < pairs; ++pair) {
    total.max[pair] = -__builtin_inff();
    total.sum[pair] = 0.0f;
  }
  const int64_t count = pairs * padded_value_dim(task);
  for (int64_t i = 0; i < count; i += kLanes) store(total.values + i, Vec{});
}

// The factors of a vector of pairs: both sides are scaled to the larger maximum, so one of the two
// is 1.
struct CombineFactors {
  float old_scales[kLanes];
  float new_scales[kLanes];
};

// Raises the maxima of `count` pairs from `first` on, and combines their sums.
PL_INLINE void combine_sums(const Partial& chunk, int64_t first, int64_t count,
                            const Partial& total, CombineFactors& factors) {
  const Vec one = splat(1.0f);
  const Vec chunk_max = load_upto(chunk.max + first, count);
  const Vec total_max = load_upto(total.max + first, count);
  const Ints is_larger = chunk_max > total_max;
  const Vec difference = chunk_max - total_max;
  const Vec factor = exp(is_larger ? -difference : difference);
  const Vec old_scale = is_larger ? factor : one, new_scale = is_larger ? one : factor;
  store_upto(total.max + first, is_larger ? chunk_max : total_max, count);
  store_upto(total.sum + first,
             load_upto(total.sum + first, count) * old_scale +
                 load_upto(chunk.sum + first, count) * new_scale,
             count);
  store(factors.old_scales, old_scale);
  store(factors.new_scales, new_scale);
}

void combine(const AttentionTask& task, const Partial& chunk, RowRange rows, const Partial& total) {
  const int64_t padded = padded_value_dim(task);
  const int64_t begin = rows.begin * task.group;
  CombineFactors factors;
  for_each_vector((rows.end - rows.begin) * task.group, [&](int64_t i, int64_t count) {
    combine_sums(chunk, begin + i, count, total, factors);
    for (int64_t pair = 0; pair < count; ++pair) {
      const Vec old_scale = splat(factors.old_scales[pair]);
      const Vec new_scale = splat(factors.new_scales[pair]);
      float* const to = total.values + (begin + i + pair) * padded;
      const float* const from = chunk.values + (begin + i + pair) * padded;
      for (int64_t d = 0; d < padded; d += kLanes) {
        store(to + d, fma(load(from + d), new_scale, load(to + d) * old_scale));
      }
    }
  });
}

PL_INLINE float log_sum_exp_of(float max, float sum) {
  return static_cast<float>(portable_log(static_cast<double>(sum)) + static_cast<double>(max));
}

void write_out(const AttentionTask& task, int64_t kv_head, const Partial& total) {
  const int64_t padded = padded_value_dim(task);
  for_each_pair(task, kv_head, [&](int64_t pair, int64_t row, int64_t head) {
    if (task.log_sum_exp != nullptr) {
      task.log_sum_exp[row * task.log_sum_exp_stride + head] =
          log_sum_exp_of(total.max[pair], total.sum[pair]);
    }
    float* const to = task.out + row * task.out_row_stride + head * task.out_head_stride;
    const Vec inverse = splat(1.0f / total.sum[pair]);
    for_each_vector(task.value_dim, [&](int64_t i, int64_t count) {
      store_upto(to + i, load(total.values + pair * padded + i) * inverse, count);
    });
  });
}

// A Head needs nothing to be set up for the thread.
struct NoSession {
  explicit NoSession(const AttentionTask&) {}
};

int64_t attention_partial(const AttentionTask& task) {
  return task.num_kv_heads * partial_floats(task.value_dim, num_pairs(task));
}

// Loops over heads inside chunks, which reads the blocks of a chunk in the longest pieces.
template <class Head>
void attend_task(const AttentionTask& task) {
  const typename Head::Session session(task);
  for (int64_t head = 0; head < task.num_kv_heads; ++head) {
    const Head one(task, head);
    one.copy_queries();
    clear_total(task, one.total());
  }
  for (int64_t chunk = first_chunk(task); chunk <= last_chunk(task); ++chunk) {
    for (int64_t head = 0; head < task.num_kv_heads; ++head) {
      const Head one(task, head);
      one.attend(chunk, one.chunk());
      combine(task, one.chunk(), rows_of_chunk(task, chunk), one.total());
    }
  }
  for (int64_t head = 0; head < task.num_kv_heads; ++head) {
    write_out(task, head, Head(task, head).total());
  }
}

template <class Head>
void attend_chunks(const AttentionTask& task, int64_t first, int64_t last, float* partials) {
  const typename Head::Session session(task);
  for (int64_t head = 0; head < task.num_kv_heads; ++head) Head(task, head).copy_queries();
  const int64_t pairs = num_pairs(task);
  for (int64_t i = first; i < last; ++i) {
    for (int64_t head = 0; head < task.num_kv_heads; ++head) {
      Head(task, head).attend(first_chunk(task) + i, partial_at(partials, pairs));
      partials += partial_floats(task.value_dim, pairs);
    }
  }
}

template <class Head>
void combine_chunks(const AttentionTask& task, const float* partials) {
  const int64_t pairs = num_pairs(task);
  for (int64_t head = 0; head < task.num_kv_heads; ++head) {
    const Partial total = Head(task, head).total();
    const float* next = partials + head * partial_floats(task.value_dim, pairs);
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
}  // namespace paceline::PACELINE_ISA_NAMESPACE
