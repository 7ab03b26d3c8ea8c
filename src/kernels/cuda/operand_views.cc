#include "kernels/cuda/operand_views.h"

#include <bit>

namespace paceline::cuda {
namespace {

constexpr int64_t kHeadAlignment = 128;

}  // namespace

PlainPanels plain_panels(const PackedMatrix& matrix) {
  const bool is_bf16 = !matrix.groups && matrix.dtype == DType::bf16;
  return {.first = static_cast<const std::byte*>(matrix.storage.get()),
          .panel_bytes = is_bf16 ? int64_t{kStageBytes} : matrix.panel_bytes(),
          .k = static_cast<uint32_t>(matrix.k),
          .stage_bytes = is_bf16 ? matrix.num_panels() * kStageBytes : 0};
}

GroupedPanels grouped_panels(const PackedMatrix& matrix) {
  const Grouping& grouping = matrix.groups->grouping;
  const auto as_unsigned = [](int64_t value) { return static_cast<uint32_t>(value); };
  const CodePlanes planes = code_planes(grouping.bits);
  const int64_t numbers = kTileColumns * (matrix.groups->has_offsets() ? 2 : 1);
  const int64_t multiple_bytes = grouping.has_multiples() ? numbers : 0;
  const int64_t padded_k = divide_up(matrix.k, int64_t{kPaddedInputs}) * kPaddedInputs;
  const int64_t num_records = divide_up(padded_k, grouping.factor_length());
  const int64_t num_groups = divide_up(padded_k, grouping.group_size);
  const int64_t multiples_place = kCodeHeadBytes + num_records * numbers * 2;
  const int64_t codes_place =
      divide_up(multiples_place + num_groups * multiple_bytes, kHeadAlignment) * kHeadAlignment;
  GroupedPanels panels{
      .first = static_cast<const std::byte*>(matrix.storage.get()),
      .k = as_unsigned(matrix.k),
      .group_bits = as_unsigned(std::countr_zero(as_unsigned(grouping.group_size))),
      .record_bits = as_unsigned(std::countr_zero(as_unsigned(grouping.factor_length()))),
      .number_bytes = as_unsigned(numbers * 2),
      .multiple_bytes = as_unsigned(multiple_bytes),
      .multiples_place = as_unsigned(multiples_place),
      .codes_place = as_unsigned(codes_place),
      .low_width = as_unsigned(planes.low),
      .high_width = as_unsigned(planes.high),
      .zero_point = static_cast<float>(grouping.zero_point.value_or(0)),
      .has_offsets = matrix.groups->has_offsets()};
  panels.panel_bytes = 2 * (codes_place + padded_k / kUnitInputs * panels.unit_bytes());
  return panels;
}

KvBlocks kv_blocks(const KvStore& store) {
  KvBlocks blocks{.keys = store.keys.raw(),
                  .values = store.values.raw(),
                  .key_block_stride = store.keys.stride(0),
                  .key_head_stride = store.keys.stride(1),
                  .value_block_stride = store.values.stride(0),
                  .value_head_stride = store.values.stride(1),
                  .block_size = store.block_size(),
                  .head_dim = store.values.size(3)};
  if (!store.has_scales()) return blocks;
  blocks.key_scales = store.key_scales.elements<float>();
  blocks.value_scales = store.value_scales.elements<float>();
  blocks.scale_block_stride = store.key_scales.stride(0);
  blocks.scale_head_stride = store.key_scales.stride(1);
  return blocks;
}

}  // namespace paceline::cuda
