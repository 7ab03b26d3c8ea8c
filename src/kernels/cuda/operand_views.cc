#include "kernels/cuda/operand_views.h"

#include <bit>

namespace paceline::cuda {

PlainPanels plain_panels(const PackedMatrix& matrix) {
  const bool is_bf16 = !matrix.groups && matrix.dtype == DType::bf16;
  return {.first = static_cast<const std::byte*>(matrix.storage.get()),
          .panel_bytes = is_bf16 ? int64_t{kStageBytes} : matrix.panel_bytes(),
          .k = static_cast<uint32_t>(matrix.k),
          .stage_bytes = is_bf16 ? matrix.num_panels() * kStageBytes : 0};
}

GroupedPanels grouped_panels(const PackedMatrix& matrix) {
  const PackedGroups& groups = *matrix.groups;
  const Grouping& grouping = groups.grouping;
  const auto as_unsigned = [](int64_t value) { return static_cast<uint32_t>(value); };
  const CodePlanes planes = code_planes(grouping.bits);
  return {.first = static_cast<const std::byte*>(matrix.storage.get()),
          .panel_bytes = matrix.panel_bytes(),
          .k = as_unsigned(matrix.k),
          .record_bytes = as_unsigned(groups.record_bytes()),
          .scale_bytes = as_unsigned(groups.scale_bytes()),
          .multiple_bytes = as_unsigned(groups.multiple_bytes()),
          .code_bytes = as_unsigned(groups.code_bytes()),
          .group_bits = as_unsigned(std::countr_zero(as_unsigned(grouping.group_size))),
          .record_bits = as_unsigned(std::countr_zero(as_unsigned(grouping.groups_per_factor))),
          .low_width = as_unsigned(planes.low),
          .high_width = as_unsigned(planes.high),
          .zero_point = static_cast<float>(grouping.zero_point.value_or(0)),
          .has_offsets = groups.has_offsets()};
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
