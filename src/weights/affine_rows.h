// AffineRows is a matrix in MLX's affine format: packed codes, and a scale and a bias for each
// group.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/grouped_rows.h"
#include "tensor/tensor.h"
#include "weights/mlx_quantization.h"

namespace paceline {

// The three tensors of NAME.weight, NAME.scales and NAME.biases, contiguous; never owned.
struct AffineTensors {
  Tensor words;   // [rows, row_length * bits / 32] uint32, see packed_codes.h
  Tensor scales;  // [rows, row_length / group_size], a float dtype
  Tensor biases;  // like scales
};

// Values are those of mlx.core.dequantize on the CPU: both scale * code and its sum with the bias
// are rounded to the dtype of the scales (measured with mlx 0.32.4; a single rounding gives other
// bits).
class AffineRows : public GroupedRows {
 public:
  AffineRows(const AffineTensors& tensors, AffineFormat format);

  int64_t num_rows() const override { return tensors_.words.size(0); }
  int64_t row_length() const override { return num_groups() * format_.group_size; }
  Grouping grouping() const override {
    return {.bits = format_.bits, .group_size = format_.group_size, .zero_point = {}};
  }
  DType value_dtype() const override { return tensors_.scales.dtype(); }
  void read_codes(int64_t row, std::span<uint8_t> codes, std::span<float> scales,
                  std::span<float> offsets) const override;
  void read_values(int64_t row, std::span<float> values) const override;
  std::vector<std::span<const std::byte>> stored_bytes() const override;

 private:
  int64_t num_groups() const { return tensors_.scales.size(1); }

  AffineTensors tensors_;
  AffineFormat format_;
};

}  // namespace paceline
