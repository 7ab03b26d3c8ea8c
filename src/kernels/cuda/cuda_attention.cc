// Keys and values in the paged store, and attention over them.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.h"
#include "kernels/cuda/code/apply_sinks.h"
#include "kernels/cuda/code/attention.h"
#include "kernels/cuda/code/attention_tiles.h"
#include "kernels/cuda/code/place_heads.h"
#include "kernels/cuda/code/store_kv.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/operand_views.h"

namespace paceline::cuda {
namespace {

constexpr int kPromptWarps = 4;
constexpr int64_t kMostOfBlock = 4;  // chunks, where they are computed apart

// The rows of all slices, their block tables one after another, and the tiles of those kernels that
// take several rows: slices of one tile of a warp, then the others.
struct AttentionPlan {
  std::vector<AttentionRow> rows;
  std::vector<int32_t> tables;
  std::vector<AttentionTile> tiles;
  AttentionPart small, large;
};

void add_slice(const AttentionSlice& slice, const AttentionParams& params, AttentionPlan& plan,
               AttentionPart& part) {
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
    part.most_chunks = std::max(part.most_chunks, divide_up(row.end, kChunkKeys) - first_chunk);
    plan.rows.push_back(row);
  }
  part.num_rows += slice.num_rows;
  plan.tables.insert(plan.tables.end(), slice.block_table.begin(), slice.block_table.end());
}

// Tiles of up to `height` packed rows of the slice whose first row in the part is `first_row`.
void add_tiles(int64_t first_row, int64_t num_rows, int64_t group, int64_t height,
               AttentionPlan& plan, AttentionPart& part) {
  for (int64_t packed = 0; packed < num_rows * group; packed += height) {
    plan.tiles.push_back(
        {.first_row = first_row + packed / group,
         .skipped = static_cast<int32_t>(packed % group),
         .count = static_cast<int32_t>(std::min(height, num_rows * group - packed))});
    ++part.num_tiles;
  }
}

AttentionPlan plan_attention(std::span<const AttentionSlice> slices, const AttentionParams& params,
                             int64_t group) {
  AttentionPlan plan;
  const auto plan_part = [&](AttentionPart& part, int64_t height, auto&& has) {
    part.first_row = std::ssize(plan.rows);
    part.first_tile = std::ssize(plan.tiles);
    for (const AttentionSlice& slice : slices) {
      if (!has(slice.num_rows * group)) continue;
      add_tiles(part.num_rows, slice.num_rows, group, height, plan, part);
      add_slice(slice, params, plan, part);
    }
  };
  const auto is_small = [](int64_t packed) { return packed <= kTileRows; };
  plan_part(plan.small, kTileRows, is_small);
  plan_part(plan.large, kPromptWarps * kTileRows,
            [&](int64_t packed) { return !is_small(packed); });
  return plan;
}

// Whether the kernels of attention_tiles.h can copy keys and values 16 bytes at a time.
bool has_tiles(const KvStore& store) {
  const auto bytes = static_cast<int64_t>(dtype_bytes(store.keys.dtype()));
  const auto is_aligned = [](const Tensor& tensor, int64_t stride_bytes) {
    return reinterpret_cast<uintptr_t>(tensor.raw()) % 16 == 0 &&
           tensor.stride(0) <= std::numeric_limits<uint32_t>::max() &&
           tensor.stride(0) * stride_bytes % 16 == 0 && tensor.stride(1) * stride_bytes % 16 == 0;
  };
  const bool has_type = store.keys.dtype() == DType::bf16 || store.has_scales();
  const int64_t head_dim = store.values.size(3), block_size = store.block_size();
  if (!has_type || head_dim % 16 != 0 || head_dim > kMostTiledHeadDim) return false;
  if (!std::has_single_bit(static_cast<uint64_t>(block_size)) || block_size * bytes < 16) {
    return false;
  }
  if (store.has_scales() && !(is_aligned(store.key_scales, sizeof(float)) &&
                              is_aligned(store.value_scales, sizeof(float)))) {
    return false;
  }
  return is_aligned(store.keys, bytes) && is_aligned(store.values, bytes);
}

// Calls body with the type of the store and the number of 64 dimensions.
template <class Body>
void with_tiles(const KvStore& store, Body&& body) {
  const auto with_blocks = [&]<class Stored>() {
    switch (divide_up(store.values.size(3), int64_t{kTileWidth})) {
      case 1:
        return body.template operator()<Stored, 1>();
      case 2:
        return body.template operator()<Stored, 2>();
      case 3:
        return body.template operator()<Stored, 3>();
      default:
        return body.template operator()<Stored, 4>();
    }
  };
  if (store.has_scales()) return with_blocks.template operator()<int8_t>();
  with_blocks.template operator()<Bf16>();
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

void CudaBackend::do_place_heads(const HeadPlacement& placement, const Tensor& q, const Tensor& k,
                                 const Tensor& v, std::span<const int64_t> slots,
                                 const KvStore& store) {
  if (q.size(2) > kMostHeadDim) return Backend::do_place_heads(placement, q, k, v, slots, store);
  const auto [on_device] = staging_.upload(slots);
  const auto norm_of = [](const std::optional<RmsNormWeights>& norm) {
    return norm ? HeadNorm{norm->weight.elements<float>(), norm->eps} : HeadNorm{};
  };
  const auto place = [&, slots_there = on_device]<class Stored>() {
    using Kernel = PlaceHeads<Stored>;
    typename Kernel::Params params{.q = heads_of(q),
                                   .k = heads_of(k),
                                   .v = heads_of(v),
                                   .q_norm = norm_of(placement.q_norm),
                                   .k_norm = norm_of(placement.k_norm),
                                   .pairs = static_cast<RopePairKind>(placement.pairs),
                                   .slots = slots_there,
                                   .kv = kv_blocks(store)};
    if (placement.rope_table != nullptr) {
      params.table = const_rows_of(*placement.rope_table);
      params.half = placement.rope_table->size(1);
    }
    const int64_t heads = q.size(1) + 2 * k.size(1);
    run<Kernel>({static_cast<uint32_t>(q.size(0)),
                 static_cast<uint32_t>(divide_up(heads, int64_t{Kernel::kWarps}))},
                params);
  };
  with_stored(store.keys.dtype(), place);
}

CudaBackend::PlacedRows CudaBackend::place_rows(std::span<const AttentionSlice> slices,
                                                const AttentionParams& params, int64_t group) {
  if (const BoundSlices* const bound = bound_.find(slices)) {
    const int64_t count = std::ssize(slices);
    return {.rows = bound->rows,
            .tables = bound->tables,
            .small = {.num_rows = count,
                      .num_tiles = count * divide_up(group, int64_t{kTileRows}),
                      .most_chunks = bound->most_chunks}};
  }
  const AttentionPlan plan = plan_attention(slices, params, group);
  const auto [rows, tables, tiles] = staging_.upload(std::span<const AttentionRow>(plan.rows),
                                                     std::span<const int32_t>(plan.tables),
                                                     std::span<const AttentionTile>(plan.tiles));
  return {.rows = rows, .tables = tables, .tiles = tiles, .small = plan.small, .large = plan.large};
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
  const int64_t group = q.size(1) / store.keys.size(1);
  const PlacedRows placed = place_rows(slices, params, group);
  if (placed.num_rows() == 0) return;
  const AttentionKernelParams kernel_params{
      .q = heads_of(q),
      .out = heads_of(out),
      .kv = kv_blocks(store),
      .rows = placed.rows,
      .tables = placed.tables,
      .group = group,
      .scale = params.scale,
      .soft_cap = params.soft_cap,
      .log_sum_exp = log_sum_exp != nullptr ? rows_of(*log_sum_exp) : Rows{},
      .block_bits =
          static_cast<uint32_t>(std::countr_zero(static_cast<uint64_t>(store.block_size())))};
  if (!has_tiles(store)) {
    return attend_by_rows(store, kernel_params, placed.num_rows(),
                          std::max(placed.small.most_chunks, placed.large.most_chunks));
  }
  const auto part_params = [&](const AttentionPart& part) {
    AttentionKernelParams of_part = kernel_params;
    of_part.rows = placed.rows + part.first_row;
    of_part.tiles = placed.tiles != nullptr ? placed.tiles + part.first_tile : nullptr;
    of_part.most_chunks = part.most_chunks;
    return of_part;
  };
  const auto attend = [&]<int kWarps>(const AttentionPart& part) {
    const int64_t kv_heads = store.keys.size(1);
    AttentionKernelParams of_part = part_params(part);
    Grid grid{static_cast<uint32_t>(part.num_tiles), static_cast<uint32_t>(kv_heads)};
    constexpr int64_t kBlocksAtOnce = kWarps == 1 ? 8 : 2;  // on a multiprocessor
    const int64_t enough = kBlocksAtOnce * multiprocessors_, units = part.num_tiles * kv_heads;
    const bool is_split = splits_attention(units, enough, part.most_chunks);
    if (is_split) {
      const int64_t chunks = reserve_partials(of_part, part.num_rows, q.size(1));
      // Blocks of several chunks copy one while they multiply another.
      const int64_t of_block = std::clamp<int64_t>(units * chunks / (2 * enough), 1, kMostOfBlock);
      of_part.chunks_of_block = static_cast<int32_t>(of_block);
      grid.z = static_cast<uint32_t>(divide_up(chunks, of_block));
    }
    with_tiles(store, [&]<class Stored, int kBlocks>() {
      grid.y = static_cast<uint32_t>(kv_heads) * kValueParts<kBlocks>;
      run<AttentionTiles<Stored, kBlocks, kWarps>>(grid, of_part);
    });
    if (is_split) merge_chunks(of_part, part.num_rows);
  };
  if (placed.small.num_tiles > 0) attend.template operator()<1>(placed.small);
  if (placed.large.num_tiles > 0) attend.template operator()<kPromptWarps>(placed.large);
}

void CudaBackend::attend_by_rows(const KvStore& store, AttentionKernelParams params,
                                 int64_t num_rows, int64_t most_chunks) {
  constexpr int64_t kWarpsOfBlock = kAttentionThreads / kWarpLanes;
  params.most_chunks = most_chunks;
  Grid grid{static_cast<uint32_t>(num_rows), static_cast<uint32_t>(params.q.heads)};
  if (!splits_attention(num_rows * params.q.heads * kWarpsOfBlock, enough_warps_, most_chunks)) {
    return with_stored(store.keys.dtype(),
                       [&]<class Stored>() { run<Attention<Stored>>(grid, params); });
  }
  grid.z = reserve_partials(params, num_rows, params.q.heads);
  with_stored(store.keys.dtype(),
              [&]<class Stored>() { run<AttentionChunks<Stored>>(grid, params); });
  merge_chunks(params, num_rows);
}

uint32_t CudaBackend::reserve_partials(AttentionKernelParams& params, int64_t num_rows,
                                       int64_t heads) {
  params.partials = attention_partials_.reserve_as<float>(num_rows * heads * params.most_chunks *
                                                          (kPartialHead + params.kv.head_dim));
  return static_cast<uint32_t>(params.most_chunks);
}

void CudaBackend::merge_chunks(const AttentionKernelParams& params, int64_t num_rows) {
  run<MergeChunks>({static_cast<uint32_t>(num_rows), static_cast<uint32_t>(params.q.heads)},
                   params);
}

bool CudaBackend::splits_attention(int64_t units, int64_t enough, int64_t most_chunks) {
  constexpr int64_t kMostChunks = 65535;  // along z of the grid
  return most_chunks > 1 && most_chunks <= kMostChunks && units < enough;
}

void CudaBackend::do_apply_sinks(const Tensor& log_sum_exp, const Tensor& sinks,
                                 const Tensor& out) {
  const Grid grid{static_cast<uint32_t>(out.size(0)), static_cast<uint32_t>(out.size(1))};
  run<ApplySinks>(
      grid, {const_rows_of(log_sum_exp), sinks.elements<float>(), heads_of(out), out.size(2)});
}

}  // namespace paceline::cuda
