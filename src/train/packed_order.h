// PackedOrder is the order in which passes have a tensor's rows, where that isn't the files'.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "layers/stored_rows.h"
#include "tensor/tensor.h"

namespace paceline {

class PackedOrder {
 public:
  PackedOrder() = default;  // the files' order
  // In turn, these rows of the files; all of them.
  explicit PackedOrder(std::span<const StoredRows> rows);
  // The files have [rows, columns], passes [columns, rows].
  static PackedOrder transposed(int64_t rows, int64_t columns);

  bool is_stored() const { return rows_.empty(); }
  // Contiguous float32 tensors of as many elements, which don't overlap.
  void to_packed(const Tensor& stored, const Tensor& packed) const;
  void to_stored(const Tensor& packed, const Tensor& stored) const;

 private:
  std::vector<int64_t> rows_;  // of the files, by the row of passes
};

}  // namespace paceline
