// Keys and values in the paged store, and attention over them.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "kernels/cuda/code/apply_sinks.h"
#include "kernels/cuda/code/attention.h"
#include "kernels/cuda/code/store_kv.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/operand_views.h"

namespace paceline::cuda {
namespace {

// The rows of all slices, and their block tables one after another.
struct AttentionPlan {
  std::vector<AttentionRow> rows;
  std::vector<int32_t> tables;
  int64_t most_chunks = 0;  // of a row
};

AttentionPlan plan_rows(std::span<const AttentionSlice> slices, const AttentionParams& params) {
  AttentionPlan plan;
  for (const AttentionSlice& slice : slices) {
    const int64_t num_keys = slice.first_position + slice.num_rows;
    for (int64_t i = 0; i < slice.num_rows; ++i) {
      const int64_t position = slice.first_position + i;
      AttentionRow row{.row = slice.first_row + i,
                       .first = 0,
                       .end = params.bidirectional ? num_keys : position + 1,
                       .table = std::ssize(plan.tables)};
      if (params.window > 0) {
        row.first = std::max<int64_t>(0, position - params.window + 1);
        row.end = std::min(row.end, position + params.window);
      }
      const int64_t first_chunk = row.first / kChunkKeys;
      plan.most_chunks = std::max(plan.most_chunks, divide_up(row.end, kChunkKeys) - first_chunk);
      plan.rows.push_back(row);
    }
    plan.tables.insert(plan.tables.end(), slice.block_table.begin(), slice.block_table.end());
  }
  return plan;
}

}  // namespace

void CudaBackend::do_store_kv(const Tensor& k, const Tensor& v, std::span<const int64_t> slots,
                              const KvStore& store) {
  const auto [on_device] = staging_.upload(slots);
  const Grid grid{static_cast<uint32_t>(k.size(0)), static_cast<uint32_t>(k.size(1))};
  with_stored(store.keys.dtype(), [&, slots_there = on_device]<class Stored>() {
    run<StoreKv<Stored>>(grid, {heads_of(k), heads_of(v), slots_there, kv_blocks(store)});
  });
}

CudaBackend::BatchRows CudaBackend::place_rows(std::span<const AttentionSlice> slices,
                                               const AttentionParams& params) {
  if (const BoundSlices* const bound = bound_.find(slices)) {
    return {bound->rows, bound->tables, std::ssize(slices), bound->most_chunks};
  }
  const AttentionPlan plan = plan_rows(slices, params);
  const auto [rows, tables] = staging_.upload(std::span<const AttentionRow>(plan.rows),
                                              std::span<const int32_t>(plan.tables));
  return {rows, tables, std::ssize(plan.rows), plan.most_chunks};
}

void CudaBackend::do_attention(const Tensor& q, const KvStore& store,
                               std::span<const AttentionSlice> slices,
                               const AttentionParams& params, const Tensor& out,
                               const Tensor* log_sum_exp) {
  if (q.size(2) > kMostHeadDim) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: heads of {} elements, expected at most {}; use --device cpu",
                            name_, q.size(2), kMostHeadDim));
  }
  const BatchRows batch = place_rows(slices, params);
  if (batch.count == 0) return;
  AttentionKernelParams kernel_params{
      .q = heads_of(q),
      .out = heads_of(out),
      .kv = kv_blocks(store),
      .rows = batch.rows,
      .tables = batch.tables,
      .group = q.size(1) / store.keys.size(1),
      .scale = params.scale,
      .soft_cap = params.soft_cap,
      .log_sum_exp = log_sum_exp != nullptr ? rows_of(*log_sum_exp) : Rows{},
      .most_chunks = batch.most_chunks};
  Grid grid{static_cast<uint32_t>(batch.count), static_cast<uint32_t>(q.size(1))};
  if (!splits_attention(grid, batch.most_chunks)) {
    return with_stored(store.keys.dtype(),
                       [&]<class Stored>() { run<Attention<Stored>>(grid, kernel_params); });
  }
  const int64_t num_partials = int64_t{grid.x} * grid.y * batch.most_chunks;
  kernel_params.partials = attention_partials_.reserve_as<float>(num_partials * (2 + q.size(2)));
  grid.z = static_cast<uint32_t>(batch.most_chunks);
  with_stored(store.keys.dtype(),
              [&]<class Stored>() { run<AttentionChunks<Stored>>(grid, kernel_params); });
  grid.z = 1;
  run<MergeChunks>(grid, kernel_params);
}

bool CudaBackend::splits_attention(Grid grid, int64_t most_chunks) const {
  constexpr int64_t kWarpsOfBlock = kAttentionThreads / kWarpLanes;
  constexpr int64_t kMostChunks = 65535;  // along z of the grid
  return most_chunks > 1 && most_chunks <= kMostChunks &&
         int64_t{grid.x} * grid.y * kWarpsOfBlock < enough_warps_;
}

void CudaBackend::do_apply_sinks(const Tensor& log_sum_exp, const Tensor& sinks,
                                 const Tensor& out) {
  const Grid grid{static_cast<uint32_t>(out.size(0)), static_cast<uint32_t>(out.size(1))};
  run<ApplySinks>(
      grid, {const_rows_of(log_sum_exp), sinks.elements<float>(), heads_of(out), out.size(2)});
}

}  // namespace paceline::cuda
