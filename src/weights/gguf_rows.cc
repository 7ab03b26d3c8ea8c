#include "weights/gguf_rows.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace paceline {
GgufRows::GgufRows(const GgufTensorInfo& tensor, const GgufBlockFormat& format, GgufRowOrder order,
                   const GgufTensorInfo* multipliers)
    : bytes_(tensor.bytes), format_(format), layout_(layout_of(tensor.type)), order_(order) {
  PL_CHECK(tensor.extents.rank() >= 1 && tensor.type == format.type, "no rows of this format");
  row_length_ = tensor.extents[tensor.extents.rank() - 1];
  num_rows_ = 1;
  for (int i = 0; i + 1 < tensor.extents.rank(); ++i) num_rows_ *= tensor.extents[i];
  if (multipliers == nullptr) return;
  multipliers_ = multipliers->bytes;
  const auto count = static_cast<int64_t>(multipliers_.size() / sizeof(float));
  PL_CHECK(multipliers->type == GgufType::f32 && count > 0 && num_rows_ % count == 0 &&
               !format.grouping.has_multiples(),
           "multipliers of a matrix or of those of a stack");
}

float GgufRows::multiplier_of(int64_t row) const {
  if (multipliers_.empty()) return 1.0f;
  const auto count = static_cast<int64_t>(multipliers_.size() / sizeof(float));
  const auto index = static_cast<size_t>(row / (num_rows_ / count));
  float multiplier = 0;
  std::memcpy(&multiplier, multipliers_.data() + index * sizeof(float), sizeof(float));
  return multiplier;
}

std::vector<std::span<const std::byte>> GgufRows::stored_bytes() const {
  if (multipliers_.empty()) return {bytes_};
  return {bytes_, multipliers_};
}

const std::byte* GgufRows::row_bytes(int64_t row) const {
  PL_CHECK(row >= 0 && row < num_rows_, "row of a matrix");
  const size_t row_size = bytes_.size() / static_cast<size_t>(num_rows_);
  return bytes_.data() + static_cast<size_t>(order_.in_file(row)) * row_size;
}

// Decodes kMaxBlockElements at a time.
template <class Use>
void GgufRows::for_each_part(int64_t row, const Use& use) const {
  const auto length = static_cast<size_t>(row_length_);
  const auto group_size = static_cast<size_t>(format_.grouping.group_size);
  float factors[kMaxBlockGroups], offset_factors[kMaxBlockGroups];
  int8_t multiples[kMaxBlockGroups], offset_multiples[kMaxBlockGroups];
  const GgufScales stored = {factors, offset_factors, multiples, offset_multiples};
  Part part;
  const std::byte* blocks = row_bytes(row);
  for (part.begin = 0; part.begin < length; part.begin += kMaxBlockElements) {
    part.size = std::min(kMaxBlockElements, length - part.begin);
    const size_t num_blocks = part.size / layout_.block_elements;
    format_.decode(blocks, num_blocks, part.codes, stored);
    group_scales(format_.grouping, part.size / group_size, stored, part.scales, part.offsets);
    blocks += num_blocks * layout_.block_bytes;
    use(part);
  }
}

void GgufRows::read_codes(int64_t row, std::span<uint8_t> codes, std::span<float> scales,
                          std::span<float> offsets) const {
  const auto length = static_cast<size_t>(row_length_);
  const auto group_size = static_cast<size_t>(format_.grouping.group_size);
  const size_t num_groups = length / group_size;
  PL_CHECK(codes.size() == length && scales.size() == num_groups && offsets.size() == num_groups,
           "room for one row");
  for_each_part(row, [&](const Part& part) {
    const size_t group = part.begin / group_size, count = part.size / group_size;
    std::copy_n(part.codes, part.size, codes.data() + part.begin);
    std::copy_n(part.scales, count, scales.data() + group);
    std::copy_n(part.offsets, count, offsets.data() + group);
  });
  if (multipliers_.empty()) return;
  const float multiplier = multiplier_of(row);
  for (float& scale : scales) scale *= multiplier;
  for (float& offset : offsets) offset *= multiplier;
}

void GgufRows::read_multiples(int64_t row, std::span<uint8_t> codes,
                              const ScaleMultiples& multiples) const {
  const auto length = static_cast<size_t>(row_length_);
  const size_t num_blocks = length / layout_.block_elements;
  const size_t num_groups = length / static_cast<size_t>(format_.grouping.group_size);
  const bool has_offsets = !format_.grouping.zero_point;
  PL_CHECK(format_.grouping.has_multiples() && codes.size() == length &&
               multiples.factors.size() == num_blocks && multiples.scales.size() == num_groups &&
               multiples.offset_factors.size() == (has_offsets ? num_blocks : 0) &&
               multiples.offsets.size() == (has_offsets ? num_groups : 0),
           "room for one row");
  format_.decode(row_bytes(row), num_blocks, codes.data(),
                 {multiples.factors.data(), multiples.offset_factors.data(),
                  multiples.scales.data(), multiples.offsets.data()});
}

void GgufRows::read_values(int64_t row, std::span<float> values) const {
  PL_CHECK(values.size() == static_cast<size_t>(row_length_), "room for one row");
  const auto group_size = static_cast<size_t>(format_.grouping.group_size);
  for_each_part(row, [&](const Part& part) {
    for (size_t i = 0; i < part.size; i += group_size) {
      grouped_values(format_.grouping, part.codes + i, part.scales[i / group_size],
                     part.offsets[i / group_size], values.data() + part.begin + i);
    }
  });
  if (multipliers_.empty()) return;
  const float multiplier = multiplier_of(row);
  for (float& value : values) value *= multiplier;
}

}  // namespace paceline
