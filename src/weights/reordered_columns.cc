#include "weights/reordered_columns.h"

#include <optional>
#include <utility>

#include "base/error.h"

namespace paceline {
namespace {

// The grouping of columns of which heads of `size` move together; nothing where there is none.
std::optional<Grouping> grouping_of_heads(Grouping grouping, const GgufHeadGroups& columns) {
  const auto holds_whole = [&](int64_t length) {
    return columns.size % length == 0 && columns.first % length == 0;
  };
  if (!holds_whole(grouping.group_size)) return std::nullopt;
  if (holds_whole(grouping.factor_length())) return grouping;
  const int64_t fewer = columns.size / grouping.group_size;
  if (fewer == 1 || grouping.groups_per_factor % fewer != 0 || columns.first % columns.size != 0) {
    return std::nullopt;
  }
  grouping.groups_per_factor = fewer;
  return grouping;
}

}  // namespace

std::shared_ptr<const GroupedRows> ReorderedColumns::make(std::shared_ptr<const GroupedRows> rows,
                                                          const GgufHeadGroups& columns) {
  PL_CHECK(columns.num_rows() == rows->row_length(), "heads of all columns");
  const auto grouping = grouping_of_heads(rows->grouping(), columns);
  if (!grouping) return nullptr;
  return std::shared_ptr<const GroupedRows>(
      new ReorderedColumns(std::move(rows), columns, *grouping));
}

template <class T>
void ReorderedColumns::reorder(std::span<const T> stored, int64_t file_unit, int64_t unit,
                               std::span<T> numbers) const {
  columns_.for_each_run([&](int64_t column, int64_t in_file, int64_t count) {
    for (int64_t i = 0; i < count; i += unit) {
      numbers[static_cast<size_t>((column + i) / unit)] =
          stored[static_cast<size_t>((in_file + i) / file_unit)];
    }
  });
}

void ReorderedColumns::read_codes(int64_t row, std::span<uint8_t> codes, std::span<float> scales,
                                  std::span<float> offsets) const {
  std::vector<uint8_t> file_codes(codes.size());
  std::vector<float> file_scales(scales.size()), file_offsets(offsets.size());
  rows_->read_codes(row, file_codes, file_scales, file_offsets);
  const int64_t group = grouping_.group_size;
  reorder<uint8_t>(file_codes, 1, 1, codes);
  reorder<float>(file_scales, group, group, scales);
  reorder<float>(file_offsets, group, group, offsets);
}

void ReorderedColumns::read_multiples(int64_t row, std::span<uint8_t> codes,
                                      const ScaleMultiples& multiples) const {
  const int64_t group = grouping_.group_size, shared = grouping_.factor_length();
  const int64_t file_shared = rows_->grouping().factor_length();
  const auto factors_of = [&](std::span<const float> found) {
    return std::vector<float>(found.size() * static_cast<size_t>(shared) /
                              static_cast<size_t>(file_shared));
  };
  std::vector<uint8_t> file_codes(codes.size());
  std::vector<float> factors = factors_of(multiples.factors);
  std::vector<float> offset_factors = factors_of(multiples.offset_factors);
  std::vector<int8_t> scales(multiples.scales.size()), offsets(multiples.offsets.size());
  rows_->read_multiples(row, file_codes, {factors, scales, offset_factors, offsets});
  reorder<uint8_t>(file_codes, 1, 1, codes);
  reorder<float>(factors, file_shared, shared, multiples.factors);
  reorder<int8_t>(scales, group, group, multiples.scales);
  if (grouping_.zero_point) return;
  reorder<float>(offset_factors, file_shared, shared, multiples.offset_factors);
  reorder<int8_t>(offsets, group, group, multiples.offsets);
}

void ReorderedColumns::read_values(int64_t row, std::span<float> values) const {
  std::vector<float> stored(values.size());
  rows_->read_values(row, stored);
  reorder<float>(stored, 1, 1, values);
}

}  // namespace paceline
