#include "train/packed_order.h"

#include <algorithm>

#include "base/error.h"

namespace paceline {
namespace {

int64_t row_elements(const Tensor& from, const Tensor& to, size_t rows) {
  const int64_t count = from.num_elements();
  PL_CHECK(to.num_elements() == count && count % static_cast<int64_t>(rows) == 0,
           "both orders have the same rows");
  return count / static_cast<int64_t>(rows);
}

}  // namespace

PackedOrder::PackedOrder(std::span<const StoredRows> rows) {
  for (const StoredRows& some : rows) {
    for (int64_t i = 0; i < some.count; ++i) rows_.push_back(some.first + i);
  }
}

PackedOrder PackedOrder::transposed(int64_t rows, int64_t columns) {
  PackedOrder order;
  for (int64_t column = 0; column < columns; ++column) {
    for (int64_t row = 0; row < rows; ++row) order.rows_.push_back(row * columns + column);
  }
  return order;
}

void PackedOrder::to_packed(const Tensor& stored, const Tensor& packed) const {
  if (is_stored()) return copy_elements(stored, packed);
  const int64_t width = row_elements(stored, packed, rows_.size());
  for (size_t i = 0; i < rows_.size(); ++i) {
    std::copy_n(stored.elements<float>() + rows_[i] * width, width,
                packed.elements<float>() + static_cast<int64_t>(i) * width);
  }
}

void PackedOrder::to_stored(const Tensor& packed, const Tensor& stored) const {
  if (is_stored()) return copy_elements(packed, stored);
  const int64_t width = row_elements(packed, stored, rows_.size());
  for (size_t i = 0; i < rows_.size(); ++i) {
    std::copy_n(packed.elements<float>() + static_cast<int64_t>(i) * width, width,
                stored.elements<float>() + rows_[i] * width);
  }
}

}  // namespace paceline
