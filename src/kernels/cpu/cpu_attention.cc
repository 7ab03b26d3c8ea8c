// How attention is cut into tiles for the threads, and how keys and values reach the store.
#include "base/divide_up.h"
#include "kernels/cpu/cpu_backend.h"

namespace paceline {
namespace {

// Rows of queries that a tile holds: enough to pay for widening the keys, few enough for the
// first-level cache. Counted in floats of queries.
constexpr int64_t kTileFloats = 6144;
// Where keys and values are one memory, tiles are larger: each reads it twice.
constexpr int64_t kSharedTileFloats = 6 * kTileFloats;
// The most query heads of one kv head that such a tile has, where they alone fill it.
constexpr int64_t kSharedTileHeads = 32;
// Rows whose keys one thread stores at a time.
constexpr int64_t kStoreRows = 64;
// Fewer tasks than this are cut into spans of chunks.
constexpr int64_t kTasksPerThread = 2;
constexpr int64_t kSpansPerThread = 4;
// Multiply-adds below which another thread is not worth waking.
constexpr int64_t kSmallAttention = 65536;
// The limit for the partials of all chunks of a call: 32 MiB.
constexpr int64_t kMaxPartialFloats = int64_t{8} << 20;

// nullptr where a store has none.
char* head_of(const Tensor& store, int64_t kv_head) {
  if (store.raw() == nullptr) return nullptr;
  return static_cast<char*>(store.raw()) +
         kv_head * store.stride(1) * static_cast<int64_t>(dtype_bytes(store.dtype()));
}

float* scales_of(const Tensor& scales, int64_t kv_head, int64_t block = 0, int64_t offset = 0) {
  if (scales.raw() == nullptr) return nullptr;
  return scales.row<float>(block) + kv_head * scales.stride(1) + offset;
}

// Of a slice's rows from its `first_row` on, and of query heads from `head` on.
PositionScoreTask position_score_task(const PositionScores& scores, const AttentionSlice& slice,
                                      int64_t first_row, int64_t head) {
  PositionScoreTask task;
  const int64_t origin = scores.reach - slice.first_position - first_row;
  if (scores.has_distances()) {
    task.by_distance = scores.by_distance.row<float>(head) + (scores.by_position ? 0 : origin);
    task.by_distance_stride = scores.by_distance.stride(0);
    task.by_distance_row_step = scores.by_position ? 0 : 1;
  }
  if (scores.has_query_terms()) {
    const Tensor& terms = scores.of_queries;
    task.of_queries = terms.row<float>(slice.first_row + first_row) + head * terms.stride(1);
    task.of_queries_row_stride = terms.stride(0);
    task.of_queries_head_stride = terms.stride(1);
  }
  if (scores.has_key_terms()) {
    const Tensor& terms = scores.of_keys;
    task.of_keys = terms.row<float>(slice.first_row) + head * terms.stride(1);
    task.of_keys_row_stride = terms.stride(0);
    task.of_keys_head_stride = terms.stride(1);
  }
  if (!scores.buckets.empty()) task.buckets = scores.buckets.data() + origin;
  return task;
}

// The query heads that tasks have of each kv head: all, or parts of many.
int64_t heads_of_task(const KvStore& store, int64_t group, int64_t head_dim) {
  if (store.values_in_keys == 0 || group * head_dim <= kSharedTileFloats) return group;
  return divide_up(group, divide_up(group, kSharedTileHeads));
}

// The rows from `row` on, before `end`, that go to consecutive slots of one block.
int64_t run_length(std::span<const int64_t> slots, int64_t row, int64_t end, int64_t block_size) {
  const int64_t first = slots[static_cast<size_t>(row)];
  const int64_t most = std::min(end - row, block_size - first % block_size);
  int64_t count = 1;
  while (count < most && slots[static_cast<size_t>(row + count)] == first + count) ++count;
  return count;
}

}  // namespace

void CpuBackend::do_store_kv(const Tensor& k, const Tensor& v, Indices<int64_t> slots,
                             const KvStore& store) {
  const auto dtype = static_cast<size_t>(store.keys.dtype());
  const auto element_bytes = static_cast<int64_t>(dtype_bytes(store.keys.dtype()));
  const int64_t rows = k.size(0), heads = k.size(1), head_dim = k.size(2);
  const int64_t block_size = store.block_size();

  const int64_t shared = store.values_in_keys;
  const auto store_run = [&](int64_t row, int64_t count, int64_t head) {
    const int64_t slot = slots.host()[static_cast<size_t>(row)];
    const int64_t block = slot / block_size, offset = slot % block_size;
    const auto store_key_part = [&](int64_t first, int64_t part_dim, const Tensor& scales) {
      kernels_.store_keys[dtype](
          {.rows = k.row<float>(row) + head * k.stride(1) + first,
           .row_stride = k.stride(0),
           .count = count,
           .head_dim = part_dim,
           .block_size = block_size,
           .slot = head_of(store.keys, head) +
                   (block * store.keys.stride(0) + first * block_size + offset) * element_bytes,
           .scales = scales_of(scales, head, block, offset)});
    };
    if (shared > 0) store_key_part(0, shared, store.value_scales);
    store_key_part(shared, head_dim - shared, store.key_scales);
    if (shared > 0) return;
    kernels_.store_values[dtype](
        {.rows = v.row<float>(row) + head * v.stride(1),
         .row_stride = v.stride(0),
         .count = count,
         .head_dim = head_dim,
         .block_size = block_size,
         .slot = head_of(store.values, head) +
                 (block * store.values.stride(0) + offset * head_dim) * element_bytes,
         .scales = scales_of(store.value_scales, head, block, offset)});
  };
  const int64_t groups = divide_up(rows, kStoreRows);
  for_each_row(groups * heads, 2 * std::min(rows, kStoreRows) * head_dim, [&](int64_t unit) {
    const int64_t end = std::min(rows, (unit / heads + 1) * kStoreRows);
    for (int64_t row = unit / heads * kStoreRows; row < end;) {
      const int64_t count = run_length(slots.host(), row, end, block_size);
      store_run(row, count, unit % heads);
      row += count;
    }
  });
}

void CpuBackend::plan_attention(const Tensor& q, const KvStore& store,
                                std::span<const AttentionSlice> slices,
                                const AttentionParams& params, const Tensor& out,
                                const Tensor* log_sum_exp) {
  const int64_t kv_heads = store.keys.size(1), head_dim = q.size(2);
  const int64_t group = q.size(1) / kv_heads;
  const int64_t part_heads = heads_of_task(store, group, head_dim);
  const int64_t tile_floats = store.values_in_keys > 0 ? kSharedTileFloats : kTileFloats;
  const int64_t tile_rows = std::max<int64_t>(1, tile_floats / (part_heads * head_dim));
  int64_t num_tiles = 0;
  for (const AttentionSlice& slice : slices) num_tiles += divide_up(slice.num_rows, tile_rows);
  // A task takes several heads where that leaves each thread a few tasks.
  const int64_t spare = num_tiles * kv_heads / (kTasksPerThread * threads_.num_threads());
  const int64_t scale_block_stride = store.has_scales() ? store.key_scales.stride(0) : 0;
  const int64_t scale_head_stride = store.has_scales() ? store.key_scales.stride(1) : 0;
  const bool has_values = store.values_in_keys == 0;
  const int64_t value_block_stride = has_values ? store.values.stride(0) : 0;
  const int64_t value_head_stride = has_values ? store.values.stride(1) : 0;
  tasks_.clear();
  for (const AttentionSlice& slice : slices) {
    for (int64_t first = 0; first < slice.num_rows; first += tile_rows) {
      const int64_t num_rows = std::min(tile_rows, slice.num_rows - first);
      const int64_t fitting = tile_floats / (num_rows * group * head_dim);
      const int64_t most_heads =
          part_heads < group ? 1 : std::clamp<int64_t>(std::min(fitting, spare), 1, kv_heads);
      const int64_t num_heads = divide_up(kv_heads, divide_up(kv_heads, most_heads));
      for (int64_t query_head = 0; query_head < q.size(1);) {
        const int64_t head = query_head / group, end_of_group = (head + 1) * group;
        const int64_t row = slice.first_row + first;
        float* const row_sums =
            log_sum_exp != nullptr ? log_sum_exp->row<float>(row) + query_head : nullptr;
        tasks_.push_back({.head_dim = head_dim,
                          .value_dim = store.value_dim(),
                          .num_kv_heads = std::min(num_heads, kv_heads - head),
                          .group = std::min(part_heads, end_of_group - query_head),
                          .num_rows = num_rows,
                          .first_position = slice.first_position + first,
                          .q = q.row<float>(row) + query_head * q.stride(1),
                          .q_row_stride = q.stride(0),
                          .q_head_stride = q.stride(1),
                          .out = out.row<float>(row) + query_head * out.stride(1),
                          .out_row_stride = out.stride(0),
                          .out_head_stride = out.stride(1),
                          .log_sum_exp = row_sums,
                          .log_sum_exp_stride = row_sums != nullptr ? log_sum_exp->stride(0) : 0,
                          .keys = head_of(store.keys, head),
                          .key_block_stride = store.keys.stride(0),
                          .key_head_stride = store.keys.stride(1),
                          .values = head_of(store.values, head),
                          .value_block_stride = value_block_stride,
                          .value_head_stride = value_head_stride,
                          .key_scales = scales_of(store.key_scales, head),
                          .value_scales = scales_of(store.value_scales, head),
                          .scale_block_stride = scale_block_stride,
                          .scale_head_stride = scale_head_stride,
                          .block_size = store.block_size(),
                          .block_table = slice.block_table.data(),
                          .scale = params.scale,
                          .soft_cap = params.soft_cap,
                          .window = params.window,
                          .chunked = params.chunked,
                          .num_keys = params.bidirectional ? slice.num_rows : 0});
        if (params.position_scores != nullptr) {
          tasks_.back().has_position_scores = true;
          tasks_.back().position_scores =
              position_score_task(*params.position_scores, slice, first, query_head);
        }
        query_head = part_heads < group ? std::min(query_head + part_heads, end_of_group)
                                        : query_head + num_heads * group;
      }
    }
  }
}

void CpuBackend::do_attention(const Tensor& q, const KvStore& store, const AttentionSlices& slices,
                              const AttentionParams& params, const Tensor& out,
                              const Tensor* log_sum_exp) {
  plan_attention(q, store, slices.host(), params, out, log_sum_exp);
  AttentionNeed need;
  for (const AttentionTask& task : tasks_) {
    const int64_t chunks = kernels_.attention_num_chunks(task);
    need.scratch = std::max(need.scratch, kernels_.attention_scratch(task));
    need.partials += chunks * kernels_.attention_partial(task);
    need.chunks += chunks;
    need.work +=
        2 * chunks * kChunkLength * task.num_rows * task.num_kv_heads * task.group * task.head_dim;
  }
  const auto num_tasks = static_cast<int64_t>(tasks_.size()),
             num_threads = int64_t{threads_.num_threads()};
  const bool has_few_tiles = num_threads > 1 && num_tasks < kTasksPerThread * num_threads;
  if (has_few_tiles && need.chunks >= kSpansPerThread * num_threads &&
      need.partials <= kMaxPartialFloats) {
    attend_by_chunks(store, need);
  } else {
    attend_by_tiles(store, need);
  }
}

void CpuBackend::attend_by_tiles(const KvStore& store, const AttentionNeed& need) {
  const auto num_tasks = static_cast<int64_t>(tasks_.size());
  auto* const scratch = thread_scratch_.reserve_as<float>(need.scratch * threads_.num_threads());
  const auto& kernels = store.values_in_keys > 0 ? kernels_.shared_attention : kernels_.attention;
  const auto kernel = kernels[static_cast<size_t>(store.keys.dtype())];
  const int64_t grain = need.work < kSmallAttention ? num_tasks : 1;
  threads_.parallel_for(num_tasks, grain, [&](int64_t begin, int64_t end, int thread_index) {
    for (int64_t i = begin; i < end; ++i) {
      AttentionTask& task = tasks_[static_cast<size_t>(i)];
      task.scratch = scratch + thread_index * need.scratch;
      kernel(task);
    }
  });
}

void CpuBackend::attend_by_chunks(const KvStore& store, const AttentionNeed& need) {
  const int64_t num_threads = threads_.num_threads();
  auto* const scratch = thread_scratch_.reserve_as<float>(need.scratch * num_threads);
  auto* const partials = chunk_partials_.reserve_as<float>(need.partials);
  const auto& kernels =
      store.values_in_keys > 0 ? kernels_.shared_attention_chunks : kernels_.attention_chunks;
  const auto kernel = kernels[static_cast<size_t>(store.keys.dtype())];
  // Chunks are counted through all tasks, whose partials lie in the same order.
  const int64_t grain = std::max<int64_t>(1, need.chunks / (kSpansPerThread * num_threads));
  threads_.parallel_for(need.chunks, grain, [&](int64_t begin, int64_t end, int thread_index) {
    int64_t first = 0;
    float* task_partials = partials;
    for (AttentionTask task : tasks_) {
      const int64_t chunks = kernels_.attention_num_chunks(task);
      const int64_t partial = kernels_.attention_partial(task);
      const int64_t from = std::max(begin - first, int64_t{0}), to = std::min(end - first, chunks);
      task.scratch = scratch + thread_index * need.scratch;
      if (from < to) kernel(task, from, to, task_partials + from * partial);
      first += chunks;
      task_partials += chunks * partial;
    }
  });

  const float* task_partials = partials;
  for (AttentionTask& task : tasks_) {
    task.scratch = scratch;
    kernels_.attention_combine(task, task_partials);
    task_partials += kernels_.attention_num_chunks(task) * kernels_.attention_partial(task);
  }
}

}  // namespace paceline
