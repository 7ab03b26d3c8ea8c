// Attention over a paged store, in chunks of absolute positions whose partials combine in ascending
// order (the online softmax of Milakov and Gimelshein, 2018, with a fixed order).
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

// Slots [offset, offset + count) of one block, which hold the chunk's keys from `index` on.
template <class T>
void widen_block(const AttentionTask& task, int64_t block, int64_t offset, int64_t count,
                 int64_t index, const TileBuffers& buffers) {
  const T* const keys = static_cast<const T*>(task.keys) + block * task.key_block_stride + offset;
  for (int64_t d = 0; d < task.head_dim; ++d) {
    widen_elements(keys + d * task.block_size, count, buffers.keys + d * kChunkLength + index);
  }
  const T* const values =
      static_cast<const T*>(task.values) + block * task.value_block_stride + offset * task.head_dim;
  const int64_t padded = padded_head_dim(task.head_dim);
  if (padded == task.head_dim) {
    widen_elements(values, count * padded, buffers.values + index * padded);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    widen_elements(values + i * task.head_dim, task.head_dim,
                   buffers.values + (index + i) * padded);
  }
}

// The keys and values of a chunk that any of `rows` sees, as float32.
template <class T>
void widen_chunk(const AttentionTask& task, int64_t chunk, RowRange rows,
                 const TileBuffers& buffers) {
  int64_t index = visible_keys(task, rows.begin, chunk).begin;
  const int64_t end = visible_keys(task, rows.end - 1, chunk).end;
  while (index < end) {
    const int64_t position = chunk * kChunkLength + index;
    const int64_t offset = position % task.block_size;
    const int64_t count = min_of(task.block_size - offset, end - index);
    widen_block<T>(task, task.block_table[position / task.block_size], offset, count, index,
                   buffers);
    index += count;
  }
}

void copy_queries(const AttentionTask& task, const TileBuffers& buffers) {
  for (int64_t pair = 0; pair < num_pairs(task); ++pair) {
    const float* const from =
        task.q + pair / task.group * task.q_row_stride + pair % task.group * task.q_head_stride;
    widen_elements(from, task.head_dim, buffers.queries + pair * task.head_dim);
  }
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

void write_out(const AttentionTask& task, const Partial& total) {
  const int64_t padded = padded_head_dim(task.head_dim);
  for (int64_t pair = 0; pair < num_pairs(task); ++pair) {
    float* const to = task.out + pair / task.group * task.out_row_stride +
                      pair % task.group * task.out_head_stride;
    const Vec inverse = splat(1.0f / total.sum[pair]);
    for_each_vector(task.head_dim, [&](int64_t i, int64_t count) {
      store_upto(to + i, load(total.values + pair * padded + i) * inverse, count);
    });
  }
}

int64_t attention_scratch(const AttentionTask& task) {
  return scratch_floats(task.head_dim, num_pairs(task));
}
int64_t attention_partial(const AttentionTask& task) {
  return partial_floats(task.head_dim, num_pairs(task));
}
int64_t attention_num_chunks(const AttentionTask& task) {
  return last_chunk(task) - first_chunk(task) + 1;
}

template <class T>
void attention(const AttentionTask& task) {
  const TileBuffers buffers = tile_buffers(task);
  copy_queries(task, buffers);
  clear_total(task, buffers.total);
  for (int64_t chunk = first_chunk(task); chunk <= last_chunk(task); ++chunk) {
    const RowRange rows = rows_of_chunk(task, chunk);
    widen_chunk<T>(task, chunk, rows, buffers);
    attend_chunk(task, buffers, chunk, rows, buffers.chunk);
    combine(task, buffers.chunk, rows, buffers.total);
  }
  write_out(task, buffers.total);
}

template <class T>
void attention_chunks(const AttentionTask& task, int64_t first, int64_t last, float* partials) {
  const TileBuffers buffers = tile_buffers(task);
  copy_queries(task, buffers);
  for (int64_t i = first; i < last; ++i) {
    const int64_t chunk = first_chunk(task) + i;
    const RowRange rows = rows_of_chunk(task, chunk);
    widen_chunk<T>(task, chunk, rows, buffers);
    attend_chunk(task, buffers, chunk, rows, partial_at(partials, num_pairs(task)));
    partials += attention_partial(task);
  }
}

void attention_combine(const AttentionTask& task, const float* partials) {
  const TileBuffers buffers = tile_buffers(task);
  clear_total(task, buffers.total);
  for (int64_t chunk = first_chunk(task); chunk <= last_chunk(task); ++chunk) {
    const Partial partial = partial_at(const_cast<float*>(partials), num_pairs(task));
    combine(task, partial, rows_of_chunk(task, chunk), buffers.total);
    partials += attention_partial(task);
  }
  write_out(task, buffers.total);
}

}  // namespace

void add_attention_kernels(KernelTable& table) {
  table.attention_scratch = attention_scratch;
  table.attention_partial = attention_partial;
  table.attention_num_chunks = attention_num_chunks;
  table.attention[0] = attention<float>;
  table.attention[1] = attention<F16>;
  table.attention[2] = attention<Bf16>;
  table.attention_chunks[0] = attention_chunks<float>;
  table.attention_chunks[1] = attention_chunks<F16>;
  table.attention_chunks[2] = attention_chunks<Bf16>;
  table.attention_combine = attention_combine;
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
