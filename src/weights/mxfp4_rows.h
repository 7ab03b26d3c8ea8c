// Mxfp4Rows is a matrix in MXFP4 (OCP Microscaling Formats, version 1.0): blocks of 32 elements
// E2M1 with a scale E8M0 each.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/grouped_rows.h"
#include "tensor/tensor.h"

namespace paceline {

// As gpt-oss is stored; contiguous, never owned.
struct Mxfp4Tensors {
  Tensor blocks;  // [rows, blocks, 16] uint8: the low half of byte b holds element 2 b of its block
  Tensor scales;  // [rows, blocks] uint8: 2^(scale - 127); 255 is NaN
};

// Values are those of transformers' convert_moe_packed_tensors. A code is 12 plus twice the E2M1
// number, which is a whole number from -12 to 12.
class Mxfp4Rows : public GroupedRows {
 public:
  static constexpr int64_t kBlock = 32;
  static constexpr int kZero = 12;

  explicit Mxfp4Rows(const Mxfp4Tensors& tensors);

  int64_t num_rows() const override { return tensors_.scales.size(0); }
  int64_t row_length() const override { return tensors_.scales.size(1) * kBlock; }
  Grouping grouping() const override {
    return {.bits = 5, .group_size = kBlock, .zero_point = kZero};
  }
  DType value_dtype() const override { return DType::bf16; }
  void read_codes(int64_t row, std::span<uint8_t> codes, std::span<float> scales,
                  std::span<float> offsets) const override;
  void read_values(int64_t row, std::span<float> values) const override;
  std::vector<std::span<const std::byte>> stored_bytes() const override;

 private:
  Mxfp4Tensors tensors_;
};

}  // namespace paceline
