// GgufRows is a matrix in one of GGUF's block formats, viewed in the mapped file.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/grouped_rows.h"
#include "weights/gguf_blocks.h"
#include "weights/gguf_order.h"
#include "weights/gguf_parse.h"

namespace paceline {

class GgufRows : public GroupedRows {
 public:
  // The file that `tensor` views must outlive it. The extents are [..., row length]; the product of
  // the others is the number of rows.
  //   multipliers  float32: one for all elements, or one for each matrix of a stack; null: none.
  //                Of formats whose groups don't share factors.
  GgufRows(const GgufTensorInfo& tensor, const GgufBlockFormat& format, GgufRowOrder order,
           const GgufTensorInfo* multipliers = nullptr);

  int64_t num_rows() const override { return num_rows_; }
  int64_t row_length() const override { return row_length_; }
  Grouping grouping() const override { return format_.grouping; }
  DType value_dtype() const override { return DType::f32; }
  void read_codes(int64_t row, std::span<uint8_t> codes, std::span<float> scales,
                  std::span<float> offsets) const override;
  void read_multiples(int64_t row, std::span<uint8_t> codes,
                      const ScaleMultiples& multiples) const override;
  void read_values(int64_t row, std::span<float> values) const override;
  std::vector<std::span<const std::byte>> stored_bytes() const override;

 private:
  static constexpr size_t kMaxBlockElements = 256;
  static constexpr size_t kMaxBlockGroups = 16;

  // Some blocks of a row, decoded.
  struct Part {
    size_t begin = 0;  // the first element
    size_t size = 0;
    uint8_t codes[kMaxBlockElements];
    float scales[kMaxBlockGroups];
    float offsets[kMaxBlockGroups];
  };
  template <class Use>
  void for_each_part(int64_t row, const Use& use) const;

  const std::byte* row_bytes(int64_t row) const;
  float multiplier_of(int64_t row) const;

  std::span<const std::byte> bytes_;
  std::span<const std::byte> multipliers_;
  const GgufBlockFormat& format_;
  GgufTypeLayout layout_;
  GgufRowOrder order_;
  int64_t num_rows_ = 0;
  int64_t row_length_ = 0;
};

}  // namespace paceline
