// Attention over a paged store, in chunks of absolute positions whose partials combine in ascending
// order (the online softmax of Milakov and Gimelshein, 2018, with a fixed order).
#include "kernels/cpu/attention_chunk.h"
#include "kernels/cpu/attention_walk.h"
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/transpose.h"

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

template <class T>
void widen_keys(const AttentionTask& task, int64_t kv_head, int64_t chunk, KeyRange keys,
                float* widened) {
  const T* const head = static_cast<const T*>(task.keys) + kv_head * task.key_head_stride;
  for_each_run(task, chunk, keys, [&](const SlotRun& run) {
    const T* const from = head + run.block * task.key_block_stride + run.offset;
    widen_rows(from, task.block_size, task.head_dim, run.count, widened + run.index, kChunkLength);
  });
}

// The first elements of keys, transposed: to[key][element] of `count` keys.
template <class T>
PL_INLINE void widen_transposed(const AttentionTask& task, const T* from, int64_t count,
                                float* to) {
  const int64_t padded = padded_value_dim(task);
  for (int64_t d = 0; d < task.value_dim; d += kLanes) {
    const int64_t rows = min_of(kLanes, task.value_dim - d);
    for_each_vector(count, [&](int64_t i, int64_t num_lanes) {
      Vec square[kLanes] = {};
      for (int64_t row = 0; row < rows; ++row) {
        square[row] = load_upto(from + (d + row) * task.block_size + i, num_lanes);
      }
      transpose_square(square);
      for (int64_t key = 0; key < num_lanes; ++key) store(to + (i + key) * padded + d, square[key]);
    });
  }
}

template <class T>
void widen_values_of_keys(const AttentionTask& task, int64_t kv_head, int64_t chunk, KeyRange keys,
                          float* widened) {
  const T* const head = static_cast<const T*>(task.keys) + kv_head * task.key_head_stride;
  for_each_run(task, chunk, keys, [&](const SlotRun& run) {
    widen_transposed(task, head + run.block * task.key_block_stride + run.offset, run.count,
                     widened + run.index * padded_value_dim(task));
  });
}

template <class T>
void widen_values(const AttentionTask& task, int64_t kv_head, int64_t chunk, KeyRange keys,
                  float* widened) {
  if (has_values_in_keys(task)) {
    return widen_values_of_keys<T>(task, kv_head, chunk, keys, widened);
  }
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

// The scales of a chunk's keys, of `head_scales`.
PL_INLINE void copy_scales(const AttentionTask& task, const float* head_scales, int64_t chunk,
                           KeyRange keys, float (&scales)[kChunkLength]) {
  for_each_run(task, chunk, keys, [&](const SlotRun& run) {
    const float* const from = head_scales + run.block * task.scale_block_stride + run.offset;
    widen_elements(from, run.count, scales + run.index);
  });
}

// Multiplies each pair's number for a key (a score made of key codes, or the weight of value codes)
// by the key's scale in `head_scales`.
PL_INLINE void apply_scales(const AttentionTask& task, const float* head_scales, int64_t chunk,
                            KeyRange keys, const TileBuffers& buffers, PairRange pairs) {
  float scales[kChunkLength] = {};
  copy_scales(task, head_scales, chunk, keys, scales);
  for (int64_t pair = pairs.begin; pair < pairs.end; ++pair) {
    float* const scores = buffers.scores + pair * kChunkLength;
    for (int64_t i = 0; i < kChunkLength; i += kLanes) {
      store(scores + i, load(scores + i) * load(scales + i));
    }
  }
}

// Multiplies the codes of elements [first, last) of all keys by the keys' scales.
PL_INLINE void scale_keys(const AttentionTask& task, const float* head_scales, int64_t chunk,
                          KeyRange keys, float* widened, int64_t first, int64_t last) {
  float scales[kChunkLength] = {};
  copy_scales(task, head_scales, chunk, keys, scales);
  for (int64_t d = first; d < last; ++d) {
    float* const elements = widened + d * kChunkLength;
    for (int64_t i = 0; i < kChunkLength; i += kLanes) {
      store(elements + i, load(elements + i) * load(scales + i));
    }
  }
}

void copy_head_queries(const AttentionTask& task, int64_t kv_head, float* queries) {
  for_each_pair(task, kv_head, [&](int64_t pair, int64_t row, int64_t head) {
    const float* const from = task.q + row * task.q_row_stride + head * task.q_head_stride;
    widen_elements(from, task.head_dim, queries + pair * task.head_dim);
  });
}

int64_t attention_scratch(const AttentionTask& task) { return scratch_floats(task); }
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
  // Values that are a part of their keys have another scale than the rest of these.
  if (kHasScales<T> && has_values_in_keys(task)) {
    scale_keys(task, task.value_scales + scale_offset, chunk, keys, buffers.widened, 0,
               task.value_dim);
    scale_keys(task, task.key_scales + scale_offset, chunk, keys, buffers.widened, task.value_dim,
               task.head_dim);
  }
  score_chunk(task, buffers, pairs);
  if (kHasScales<T> && !has_values_in_keys(task)) {
    apply_scales(task, task.key_scales + scale_offset, chunk, keys, buffers, pairs);
  }
  if (task.has_position_scores) {
    add_position_scores_of_chunk(task, buffers, pairs, kv_head, chunk);
  }
  exponentiate_chunk(task, buffers, pairs, partial);
  widen_values<T>(task, kv_head, chunk, keys, buffers.widened);
  if constexpr (kHasScales<T>) {
    apply_scales(task, task.value_scales + scale_offset, chunk, keys, buffers, pairs);
  }
  if (!has_values_in_keys(task)) {
    prefetch_blocks(task, next,
                    static_cast<const T*>(task.values) + next.kv_head * task.value_head_stride,
                    task.value_block_stride);
  }
  weigh_chunk(task, buffers, pairs, partial);
}

template <class T>
class VectorHead {
 public:
  using Session = NoSession;

  VectorHead(const AttentionTask& task, int64_t kv_head)
      : task_(task), kv_head_(kv_head), buffers_(tile_buffers(task, kv_head)) {}

  Partial chunk() const { return buffers_.chunk; }
  Partial total() const { return buffers_.total; }
  void copy_queries() const { copy_head_queries(task_, kv_head_, buffers_.queries); }
  void attend(int64_t chunk, const Partial& partial) const {
    attend_chunk<T>(task_, buffers_, kv_head_, chunk, partial);
  }

 private:
  const AttentionTask& task_;
  int64_t kv_head_;
  TileBuffers buffers_;
};

void attention_combine(const AttentionTask& task, const float* partials) {
  combine_chunks<VectorHead<float>>(task, partials);
}

}  // namespace

void add_attention_kernels(KernelTable& table) {
  table.attention_scratch = attention_scratch;
  table.attention_partial = attention_partial;
  table.attention_num_chunks = attention_num_chunks;
  table.attention[0] = attend_task<VectorHead<float>>;
  table.attention[1] = attend_task<VectorHead<F16>>;
  table.attention[2] = attend_task<VectorHead<Bf16>>;
  table.attention[3] = attend_task<VectorHead<int8_t>>;
  table.attention_chunks[0] = attend_chunks<VectorHead<float>>;
  table.attention_chunks[1] = attend_chunks<VectorHead<F16>>;
  table.attention_chunks[2] = attend_chunks<VectorHead<Bf16>>;
  table.attention_chunks[3] = attend_chunks<VectorHead<int8_t>>;
  table.attention_combine = attention_combine;
  // Kernels in tiles replace some of these, and don't take values that are a part of their keys.
  for (int type = 0; type < kNumKvTypes; ++type) {
    table.shared_attention[type] = table.attention[type];
    table.shared_attention_chunks[type] = table.attention_chunks[type];
  }
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
