#include "weights/integer_rows.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/divide_up.h"
#include "base/error.h"
#include "weights/rounded_value.h"

namespace paceline {
namespace {

// The longest groups of kernels that divide a format's groups; 0: none does.
int64_t kernel_group_size(int bits, int64_t group_size) {
  const bool fills_words = bits == 3 || bits == 5;
  for (const int64_t size : {128, 64, 32, 16}) {
    if (group_size % size == 0 && (size > 16 || !fills_words)) return size;
  }
  return 0;
}

// Kernels have no codes of 1 and of 7 bits.
int kernel_bits(int bits) { return bits == 1 ? 2 : bits == 7 ? 8 : bits; }

int64_t num_groups(const IntegerMatrix& matrix) {
  return divide_up(matrix.row_length, matrix.scales.layout().block_columns);
}

}  // namespace

bool IntegerRows::kernels_read(int bits, int64_t group_size, int64_t row_length) {
  return row_length % group_size == 0 && kernel_group_size(kernel_bits(bits), group_size) != 0;
}

bool IntegerRows::are_equal_groups(std::span<const int32_t> group_of, int64_t group_size) {
  std::vector<int64_t> sizes(group_of.size());
  for (const int32_t group : group_of) ++sizes[static_cast<size_t>(group)];
  return std::ranges::all_of(sizes, [&](int64_t size) { return size == 0 || size == group_size; });
}

IntegerRows::IntegerRows(IntegerMatrix matrix) : matrix_(std::move(matrix)) {
  PL_CHECK(matrix_.group_of.empty() || std::ssize(matrix_.group_of) == matrix_.row_length,
           "a group for each column");
  const int64_t size = matrix_.scales.layout().block_columns;
  const std::vector<int32_t>& groups = matrix_.group_of;
  if (!kernels_read(matrix_.bits, size, matrix_.row_length)) return;
  if (!groups.empty() && !are_equal_groups(groups, size)) return;
  order_.resize(groups.size());
  std::iota(order_.begin(), order_.end(), 0);
  std::ranges::stable_sort(order_, {},
                           [&](int32_t column) { return groups[static_cast<size_t>(column)]; });
  const int bits = kernel_bits(matrix_.bits);
  grouping_ = {
      .bits = bits, .group_size = kernel_group_size(bits, size), .zero_point = common_zero()};
}

IntegerRows::Groups IntegerRows::read_groups(int64_t row) const {
  const auto count = static_cast<size_t>(num_groups(matrix_));
  Groups groups{std::vector<float>(count), std::vector<float>(count), std::vector<float>(count)};
  matrix_.scales.read_row(row, groups.scales);
  if (matrix_.offset_grid) matrix_.offset_grid->read_row(row, groups.offsets);
  if (matrix_.zero_grid) matrix_.zero_grid->read_row(row, groups.zeros);
  std::vector<uint8_t> codes(count);
  if (matrix_.zero_codes) matrix_.zero_codes->read_row(row, codes);
  for (size_t i = 0; i < count; ++i) {
    groups.zeros[i] += static_cast<float>(matrix_.zero + codes[i]);
  }
  return groups;
}

// Symmetric formats store the same zero point for every group.
std::optional<int> IntegerRows::common_zero() const {
  if (matrix_.offset_grid) return std::nullopt;
  if (!matrix_.zero_codes && !matrix_.zero_grid) return matrix_.zero;
  std::optional<float> common;
  for (int64_t row = 0; row < matrix_.rows; ++row) {
    for (const float zero : read_groups(row).zeros) {
      if (!common) common = zero;
      if (zero != *common) return std::nullopt;
    }
  }
  // Kernels have whole ones.
  const bool is_code = common && *common >= 0 && *common <= 255;
  if (!is_code || static_cast<float>(static_cast<int>(*common)) != *common) return std::nullopt;
  return static_cast<int>(*common);
}

void IntegerRows::read_codes(int64_t row, std::span<uint8_t> codes, std::span<float> scales,
                             std::span<float> offsets) const {
  matrix_.codes->read_row(row, codes);
  if (!order_.empty()) {
    const std::vector<uint8_t> stored(codes.begin(), codes.end());
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = stored[static_cast<size_t>(order_[i])];
  }
  const Groups groups = read_groups(row);
  const auto parts =
      static_cast<size_t>(matrix_.scales.layout().block_columns / grouping_.group_size);
  for (size_t i = 0; i < scales.size(); ++i) {
    scales[i] = groups.scales[i / parts];
    offsets[i] = groups.offsets[i / parts] - groups.zeros[i / parts] * scales[i];
  }
}

void IntegerRows::read_values(int64_t row, std::span<float> values) const {
  std::vector<uint8_t> codes(values.size());
  matrix_.codes->read_row(row, codes);
  const Groups groups = read_groups(row);
  const auto size = static_cast<size_t>(matrix_.scales.layout().block_columns);
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t group =
        matrix_.group_of.empty() ? i / size : static_cast<size_t>(matrix_.group_of[i]);
    values[i] = (static_cast<float>(codes[i]) - groups.zeros[group]) * groups.scales[group] +
                groups.offsets[group];
  }
  round_values(matrix_.dtype, values);
}

}  // namespace paceline
