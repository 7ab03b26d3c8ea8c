// SymmetricRows is a matrix in codes of 8 bits around 128 with a scale for each group.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "tensor/grouped_rows.h"
#include "tensor/memory.h"
#include "tensor/tensor.h"

namespace paceline {

// scale * (code - 128), where the group's largest magnitude is 127 steps (the rule of GGUF's Q8_0,
// with the scale kept in float32); codes are rounded to even. Owns its memory.
class SymmetricRows : public GroupedRows {
 public:
  // Quantises a contiguous matrix [rows, row length] of a float dtype, which becomes value_dtype().
  // Throws Error numerical "WHERE: ..." when an element isn't finite.
  SymmetricRows(const Tensor& matrix, int64_t group_size, std::string_view where, Memory& memory,
                ThreadPool& threads);

  int64_t num_rows() const override { return codes_.view.size(0); }
  int64_t row_length() const override { return scales_.view.size(1) * group_size_; }
  Grouping grouping() const override {
    return {.bits = 8, .group_size = group_size_, .zero_point = 128};
  }
  DType value_dtype() const override { return value_dtype_; }
  void read_codes(int64_t row, std::span<uint8_t> codes, std::span<float> scales,
                  std::span<float> offsets) const override;
  void read_values(int64_t row, std::span<float> values) const override;
  std::vector<std::span<const std::byte>> stored_bytes() const override;

 private:
  std::span<const uint8_t> codes_of(int64_t row) const;

  int64_t group_size_;
  DType value_dtype_;
  OwnedTensor codes_;   // [rows, row length / 4] words of four codes
  OwnedTensor scales_;  // [rows, groups] float32
};

}  // namespace paceline
