#include "weights/gguf_rows.h"

#include <algorithm>

#include "base/error.h"

namespace paceline {
namespace {

constexpr size_t kMaxBlockElements = 256;
constexpr size_t kMaxBlockGroups = 16;

}  // namespace

GgufRows::GgufRows(const GgufTensorInfo& tensor, const GgufBlockFormat& format, GgufRowOrder order)
    : bytes_(tensor.bytes), format_(format), layout_(layout_of(tensor.type)), order_(order) {
  PL_CHECK(tensor.extents.rank() >= 1 && tensor.type == format.type, "no rows of this format");
  row_length_ = tensor.extents[tensor.extents.rank() - 1];
  num_rows_ = 1;
  for (int i = 0; i + 1 < tensor.extents.rank(); ++i) num_rows_ *= tensor.extents[i];
}

const std::byte* GgufRows::row_bytes(int64_t row) const {
  PL_CHECK(row >= 0 && row < num_rows_, "row of a matrix");
  const size_t row_size = bytes_.size() / static_cast<size_t>(num_rows_);
  return bytes_.data() + static_cast<size_t>(order_.in_file(row)) * row_size;
}

void GgufRows::read_codes(int64_t row, std::span<uint8_t> codes, std::span<float> scales,
                          std::span<float> offsets) const {
  const auto length = static_cast<size_t>(row_length_);
  const size_t num_groups = length / static_cast<size_t>(format_.grouping.group_size);
  PL_CHECK(codes.size() == length && scales.size() == num_groups && offsets.size() == num_groups,
           "room for one row");
  format_.decode(row_bytes(row), length / layout_.block_elements, codes.data(), scales.data(),
                 offsets.data());
}

void GgufRows::read_values(int64_t row, std::span<float> values) const {
  PL_CHECK(values.size() == static_cast<size_t>(row_length_), "room for one row");
  const auto group_size = static_cast<size_t>(format_.grouping.group_size);
  uint8_t codes[kMaxBlockElements];
  float scales[kMaxBlockGroups];
  float offsets[kMaxBlockGroups];
  const std::byte* blocks = row_bytes(row);
  // As many blocks at once as the largest block has elements.
  for (size_t begin = 0; begin < values.size(); begin += kMaxBlockElements) {
    const auto part = values.subspan(begin, std::min(kMaxBlockElements, values.size() - begin));
    const size_t num_blocks = part.size() / layout_.block_elements;
    format_.decode(blocks, num_blocks, codes, scales, offsets);
    blocks += num_blocks * layout_.block_bytes;
    for (size_t i = 0; i < part.size(); i += group_size) {
      grouped_values(format_.grouping, codes + i, scales[i / group_size], offsets[i / group_size],
                     part.data() + i);
    }
  }
}

}  // namespace paceline
