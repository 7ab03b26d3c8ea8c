// Keys and values in the paged store, and attention over them.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.h"
#include "kernels/cuda/code/apply_sinks.h"
#include "kernels/cuda/code/attention.h"
#include "kernels/cuda/code/attention_groups.h"
#include "kernels/cuda/code/attention_tiles.h"
#include "kernels/cuda/code/gather.h"
#include "kernels/cuda/code/place_heads.h"
#include "kernels/cuda/code/store_kv.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/operand_views.h"

namespace paceline::cuda {
namespace {

constexpr int64_t kMostOfBlock = 4;  // chunks, where they are computed apart
// The part of a device's memory that chunks' results may take before they are merged.
constexpr int64_t kPartialsShare = 64;

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

// The packed rows of a tile of attention_groups.h, whose kernels are Hopper's; 0 where they don't
// take the store.
int64_t grouped_rows(const KvStore& store, const TileDevice& device) {
  constexpr int64_t kOfShortHeads = 128, kOfLongHeads = 64;
  const int64_t head_dim = store.values.size(3);
  const bool takes_heads = head_dim <= kMostDimsOfBlock || head_dim == 192 || head_dim == 256;
  if (!device.can_take_registers || !takes_heads || !has_tiles(store) ||
      int64_t{sizeof(AttentionGroupsShared<int8_t, 4>)} > device.shared_bytes) {
    return 0;
  }
  return head_dim <= kMostDimsOfBlock ? kOfShortHeads : kOfLongHeads;
}

// Whether two blocks share a tile's queries, each for some dimensions of the values, and write them
// without another kernel.
bool shares_queries(const KvStore& store, const AttentionParts& parts) {
  const auto is_whole = [](const AttentionPart& part) { return !part.is_split; };
  return store.values.size(3) > kMostDimsOfBlock &&
         (std::ranges::any_of(parts.small, is_whole) || std::ranges::any_of(parts.large, is_whole));
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

void CudaBackend::do_store_kv(const Tensor& k, const Tensor& v, Indices<int64_t> slots,
                              const KvStore& store) {
  const auto [on_device] = staging_.upload(slots);
  const Grid grid{static_cast<uint32_t>(k.size(0)), static_cast<uint32_t>(k.size(1))};
  with_stored(store.keys.dtype(), [&, slots_there = on_device]<class Stored>() {
    run<StoreKv<Stored>>(grid, {heads_of(k), heads_of(v), slots_there, kv_blocks(store)});
  });
}

void CudaBackend::do_place_heads(const HeadPlacement& placement, const Tensor& q, const Tensor& k,
                                 const Tensor& v, Indices<int64_t> slots, const KvStore& store) {
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

CudaBackend::PlacedRows CudaBackend::place_rows(const AttentionSlices& slices,
                                                const AttentionParams& params,
                                                const AttentionSizes& sizes) {
  if (slices.is_on_device()) {
    const DeviceSlices placed = slices.device();
    return {.rows = placed.rows,
            .tables = placed.tables,
            .parts = decoding_parts(slices.size(), placed.most_chunks, sizes)};
  }
  AttentionPlan plan = plan_attention(slices.host(), params, sizes);
  const auto [rows, tables, tiles] = staging_.upload(plan.rows, plan.tables, plan.tiles);
  return {.rows = rows, .tables = tables, .tiles = tiles, .parts = std::move(plan.parts)};
}

void CudaBackend::do_attention(const Tensor& q, const KvStore& store, const AttentionSlices& slices,
                               const AttentionParams& params, const Tensor& out,
                               const Tensor* log_sum_exp) {
  if (q.size(2) > kMostHeadDim) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: heads of {} elements, expected at most {}; use --device cpu",
                            name_, q.size(2), kMostHeadDim));
  }
  const int64_t kv_heads = store.keys.size(1), group = q.size(1) / kv_heads;
  const int64_t result_bytes =
      q.size(1) * (kPartialHead + q.size(2)) * static_cast<int64_t>(sizeof(float));
  const PlacedRows placed =
      place_rows(slices, params,
                 {.kv_heads = kv_heads,
                  .group = group,
                  .multiprocessors = multiprocessors_,
                  .most_results = device_bytes_ / kPartialsShare / result_bytes,
                  .group_rows = grouped_rows(store, tile_device_)});
  const AttentionParts& parts = placed.parts;
  if (parts.num_rows() == 0) return;
  AttentionKernelParams kernel_params{
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
    return attend_by_rows(store, kernel_params, parts.num_rows(), parts.most_chunks());
  }
  // In place, one block would write where the other has yet to read.
  if (q.raw() == out.raw() && shares_queries(store, parts)) {
    kernel_params.q = heads_of(copy_queries(q));
  }
  const auto params_of = [&](const AttentionPart& part) {
    AttentionKernelParams of_part = kernel_params;
    of_part.rows = placed.rows + part.first_row;
    of_part.tiles = placed.tiles != nullptr ? placed.tiles + part.first_tile : nullptr;
    of_part.most_chunks = part.most_chunks;
    return of_part;
  };
  const auto grid_of = [&](const AttentionPart& part) {
    return Grid{static_cast<uint32_t>(part.num_tiles), static_cast<uint32_t>(kv_heads)};
  };
  const auto attend = [&]<int kWarps>(const AttentionPart& part) {
    AttentionKernelParams of_part = params_of(part);
    Grid grid = grid_of(part);
    if (part.is_split) {
      const int64_t chunks = reserve_partials(of_part, part.num_rows, q.size(1));
      // Blocks of several chunks copy one while they multiply another.
      const int64_t enough = kTileBlocks<kWarps> * multiprocessors_;
      const int64_t of_block =
          std::clamp<int64_t>(part.num_tiles * kv_heads * chunks / (2 * enough), 1, kMostOfBlock);
      of_part.chunks_of_block = static_cast<int32_t>(of_block);
      grid.z = static_cast<uint32_t>(divide_up(chunks, of_block));
    }
    with_tiles(store, [&]<class Stored, int kBlocks>() {
      grid.y = static_cast<uint32_t>(kv_heads) * kValueParts<kBlocks>;
      run<AttentionTiles<Stored, kBlocks, kWarps>>(grid, of_part);
    });
    if (part.is_split) merge_chunks(of_part, part.num_rows);
  };
  for (const AttentionPart& part : parts.small) attend.template operator()<1>(part);
  for (const AttentionPart& part : parts.large) attend.template operator()<kPromptWarps>(part);
  for (const AttentionPart& part : parts.grouped) {
    with_tiles(store, [&]<class Stored, int kBlocks>() {
      run<AttentionGroups<Stored, kBlocks>>(grid_of(part), params_of(part));
    });
  }
}

Tensor CudaBackend::copy_queries(const Tensor& q) {
  const Tensor copy(attention_queries_.reserve_as<float>(q.num_elements()), DType::f32,
                    {q.size(0), q.size(1), q.size(2)});
  run<CopyHeads>(element_grid(q.size(0), q.size(1) * q.size(2)),
                 {heads_of(q), heads_of(copy), q.size(2)});
  return copy;
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

void CudaBackend::do_apply_sinks(const Tensor& log_sum_exp, const Tensor& sinks,
                                 const Tensor& out) {
  const Grid grid{static_cast<uint32_t>(out.size(0)), static_cast<uint32_t>(out.size(1))};
  run<ApplySinks>(
      grid, {const_rows_of(log_sum_exp), sinks.elements<float>(), heads_of(out), out.size(2)});
}

}  // namespace paceline::cuda
