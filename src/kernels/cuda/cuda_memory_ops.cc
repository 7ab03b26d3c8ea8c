// Operations that move elements: packing, transfers, chosen rows and columns, pooling, blocks.
#include <tuple>

#include "kernels/cuda/code/gather.h"
#include "kernels/cuda/code/gather_codes.h"
#include "kernels/cuda/code/pool_rows.h"
#include "kernels/cuda/code_packing.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/operand_views.h"

namespace paceline::cuda {
namespace {

static_assert(static_cast<int>(PoolingKind::max) == static_cast<int>(RowPooling::max));

void copy_block(CudaDevice& device, const Tensor& blocks, const BlockMove& move) {
  const Tensor from = blocks.slice(0, move.from, move.from + 1);
  const Tensor to = blocks.slice(0, move.to, move.to + 1);
  if (from.is_contiguous()) {
    return device.copy_within_device(to.raw(), from.raw(), from.size_bytes());
  }
  for (int64_t head = 0; head < blocks.size(1); ++head) {
    const Tensor part = from.slice(1, head, head + 1);
    device.copy_within_device(to.slice(1, head, head + 1).raw(), part.raw(), part.size_bytes());
  }
}

}  // namespace

std::span<const float> CudaBackend::do_read(const Tensor& x, std::vector<float>& staging) {
  staging.resize(static_cast<size_t>(x.num_elements()));
  device_.copy_from_device(staging.data(), x.raw(), x.size_bytes());
  return staging;
}

void CudaBackend::do_write(std::span<const float> elements, const Tensor& out) {
  normed_ = {};
  device_.copy_to_device(out.raw(), elements.data(), elements.size_bytes());
}

PackedMatrix CudaBackend::move_to_device(PackedMatrix matrix) {
  const size_t bytes = matrix.storage.size_bytes();
  Buffer storage(memory_, bytes, Contents::undefined);
  device_.copy_to_device(storage.get(), matrix.storage.get(), bytes);
  matrix.storage = std::move(storage);
  return matrix;
}

PackedMatrix CudaBackend::do_pack_matrix(std::span<const Tensor> parts, DType dtype) {
  PackedMatrix matrix = paceline::pack_matrix(parts, dtype, host_memory_, threads_);
  has_bf16_products_ = has_bf16_products_ || dtype == DType::bf16;
  has_rounded_products_ = has_rounded_products_ || has_bf16_products_;
  if (dtype == DType::bf16) matrix.storage = as_core_matrices(matrix);
  return move_to_device(std::move(matrix));
}

// The panels of a bfloat16 matrix in the order of code/packed_panels.h.
Buffer CudaBackend::as_core_matrices(const PackedMatrix& matrix) {
  const int64_t stage_words = matrix.num_panels() * kStageWords, pairs = matrix.padded_k() / 2;
  Buffer packed(host_memory_, static_cast<size_t>(num_stages(matrix.k) * stage_words * 4),
                Contents::zeroed);
  threads_.parallel_for(matrix.num_panels(), 1, [&](int64_t begin, int64_t end, int /*thread*/) {
    for (int64_t panel = begin; panel < end; ++panel) {
      const auto* const from = reinterpret_cast<const uint32_t*>(
          static_cast<const std::byte*>(matrix.storage.get()) + panel * matrix.panel_bytes());
      auto* const to = static_cast<uint32_t*>(packed.get()) + panel * kStageWords;
      for (uint32_t pair = 0; pair < pairs; ++pair) {
        for (uint32_t column = 0; column < kPanelWidth; ++column) {
          to[pair / kStagePairs * stage_words + core_word(pair, column)] =
              from[pair * kPanelWidth + column];
        }
      }
    }
  });
  return packed;
}

PackedMatrix CudaBackend::do_pack_groups(std::span<const GroupedRows* const> parts,
                                         ActivationType activations) {
  const bool is_ordered = !parts[0]->column_order().empty();
  if (is_ordered || parts[0]->grouping().is_float8()) return pack_expanded(parts);
  has_rounded_products_ = true;
  PackedMatrix matrix = paceline::pack_groups(parts, activations, host_memory_, threads_);
  matrix.storage = pack_code_panels(matrix, host_memory_, threads_);
  return move_to_device(std::move(matrix));
}

// Kernels read no E4M3, and no inputs in another order.
PackedMatrix CudaBackend::pack_expanded(std::span<const GroupedRows* const> parts) {
  std::vector<OwnedTensor> values;
  std::vector<Tensor> views;
  for (const GroupedRows* const part : parts) {
    const int64_t rows = part->num_rows(), length = part->row_length();
    values.push_back(allocate_tensor(host_memory_, DType::f32, {rows, length}));
    views.push_back(values.back().view);
    threads_.parallel_for(rows, 1, [&](int64_t begin, int64_t end, int /*thread*/) {
      for (int64_t row = begin; row < end; ++row) {
        part->read_values(row, {views.back().row<float>(row), static_cast<size_t>(length)});
      }
    });
  }
  return do_pack_matrix(views, DType::bf16);
}

PackedMatrix CudaBackend::do_gather_columns(const PackedMatrix& matrix,
                                            std::span<const int32_t> columns) {
  PackedMatrix gathered;
  gathered.dtype = matrix.dtype;
  gathered.groups = matrix.groups;
  gathered.n = std::ssize(columns);
  gathered.k = matrix.k;
  const auto [on_device] = staging_.upload(columns);
  if (!matrix.groups && matrix.dtype == DType::bf16) {
    const PlainPanels from = plain_panels(matrix);
    gathered.storage = Buffer(
        memory_, static_cast<size_t>(num_stages(matrix.k) * gathered.num_panels()) * kStageBytes);
    run<GatherBf16Columns>(element_grid(gathered.n, num_stages(matrix.k) * kStagePairs),
                           {.from = from,
                            .to = static_cast<std::byte*>(gathered.storage.get()),
                            .to_stage_bytes = gathered.num_panels() * kStageBytes,
                            .columns = on_device});
    device_.synchronize();  // products read weights before kernels in front of them have ended
    return gathered;
  }
  if (matrix.groups) {
    const GroupedPanels from = grouped_panels(matrix);
    gathered.storage =
        Buffer(memory_, static_cast<size_t>(gathered.num_panels() * from.panel_bytes));
    const int64_t words = matrix.k * matrix.groups->grouping.bits / 4;  // of two columns
    run<GatherCodes>(
        element_grid(divide_up(gathered.n, 2), words),
        {from, static_cast<std::byte*>(gathered.storage.get()), on_device, gathered.n});
    device_.synchronize();
    return gathered;
  }
  gathered.storage = Buffer(memory_, static_cast<size_t>(gathered.bytes()));
  const auto copy = [&, columns_there = on_device]<class Unit>() {
    run<GatherColumns<Unit>>(element_grid(gathered.n, matrix.k),
                             {.from = plain_panels(matrix),
                              .to = static_cast<std::byte*>(gathered.storage.get()),
                              .units = matrix.padded_k(),
                              .columns = columns_there});
  };
  if (matrix.dtype == DType::f16) copy.template operator()<uint16_t>();
  if (matrix.dtype == DType::f32) copy.template operator()<uint32_t>();
  device_.synchronize();
  return gathered;
}

void CudaBackend::do_gather_rows(const Tensor& x, Indices<int32_t> rows, const Tensor& out) {
  const auto [on_device] = staging_.upload(rows);
  run<GatherRows>(element_grid(out.size(0), out.size(1)),
                  {const_rows_of(x), on_device, rows_of(out), out.size(1)});
}

void CudaBackend::do_clear(const Tensor& out) {
  run<Clear>(element_grid(out.size(0), out.size(1)), {.out = rows_of(out), .width = out.size(1)});
}

void CudaBackend::do_pool_rows(RowPooling how, const Tensor& x, int64_t first_position,
                               std::span<double> pooled) {
  const auto [on_device] = staging_.upload(pooled);
  run<PoolRows>({element_grid(1, x.size(1)).y}, {.x = const_rows_of(x),
                                                 .num_rows = x.size(0),
                                                 .width = x.size(1),
                                                 .first_position = first_position,
                                                 .how = static_cast<PoolingKind>(how),
                                                 .pooled = on_device});
  device_.copy_from_device(pooled.data(), on_device, pooled.size_bytes());
}

void CudaBackend::do_copy_blocks(const KvStore& store, std::span<const BlockMove> moves) {
  for (const BlockMove& move : moves) {
    if (move.from == move.to) continue;
    copy_block(device_, store.keys, move);
    copy_block(device_, store.values, move);
    if (!store.has_scales()) continue;
    copy_block(device_, store.key_scales, move);
    copy_block(device_, store.value_scales, move);
  }
}

}  // namespace paceline::cuda
