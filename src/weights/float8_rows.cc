#include "weights/float8_rows.h"

#include <algorithm>
#include <vector>

#include "base/divide_up.h"
#include "tensor/float8.h"
#include "weights/rounded_value.h"

namespace paceline {
namespace {

// The longest groups of kernels that divide rows and their blocks; 0: none does.
int64_t kernel_group_size(int64_t row_length, int64_t block_columns) {
  const int64_t block = std::min(block_columns, row_length);
  for (const int64_t size : {128, 64, 32, 16}) {
    if (block % size == 0 && row_length % size == 0) return size;
  }
  return 0;
}

}  // namespace

Float8Rows::Float8Rows(const Tensor& elements, const ScaleGrid& scales, DType dtype)
    : elements_(elements),
      scales_(scales),
      dtype_(dtype),
      group_size_(kernel_group_size(elements.size(1), scales.layout().block_columns)) {}

bool Float8Rows::kernels_read(DType elements, int64_t row_length, const ScaleLayout& layout,
                              DType dtype) {
  return elements == DType::f8_e4m3 && dtype == DType::bf16 &&
         kernel_group_size(row_length, layout.block_columns) != 0;
}

bool Float8Rows::has_usual_scales() const {
  // Codes are 2^-9 to 448 in magnitude, and normal numbers 2^-126 to 2^128.
  constexpr float kLeast = 0x1p-117f, kMost = 0x1p119f;
  return scales_.all_of([](float scale) {
    const float magnitude = std::abs(scale);
    return scale == 0.0f || (magnitude >= kLeast && magnitude <= kMost);
  });
}

std::span<const uint8_t> Float8Rows::row_of(int64_t row) const {
  const auto length = static_cast<size_t>(row_length());
  return {static_cast<const uint8_t*>(elements_.raw()) + static_cast<size_t>(row) * length, length};
}

std::vector<float> Float8Rows::scales_of(int64_t row) const {
  std::vector<float> scales(
      static_cast<size_t>(divide_up(row_length(), scales_.layout().block_columns)));
  scales_.read_row(row, scales);
  return scales;
}

void Float8Rows::read_codes(int64_t row, std::span<uint8_t> codes, std::span<float> scales,
                            std::span<float> offsets) const {
  std::ranges::copy(row_of(row), codes.begin());
  const std::vector<float> stored = scales_of(row);
  const int64_t block = scales_.layout().block_columns;
  for (size_t g = 0; g < scales.size(); ++g) {
    scales[g] = stored[g * static_cast<size_t>(group_size_) / static_cast<size_t>(block)];
    offsets[g] = 0.0f;
  }
}

void Float8Rows::read_values(int64_t row, std::span<float> values) const {
  const auto& table = float8_values(elements_.dtype());
  const std::span<const uint8_t> codes = row_of(row);
  const std::vector<float> scales = scales_of(row);
  const auto block = static_cast<size_t>(scales_.layout().block_columns);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = table[codes[i]] * scales[i / block];
  }
  round_values(dtype_, values);
}

}  // namespace paceline
