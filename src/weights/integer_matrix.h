// Makes a QuantisedMatrix of integer codes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "weights/integer_rows.h"
#include "weights/quantised_matrix.h"

namespace paceline {

// What decides whether a matrix stays packed.
struct IntegerFormat {
  int bits = 4;
  int64_t group_size = 0;
  DType scale_dtype = DType::f16;
  DType value_dtype = DType::bf16;
  // The group of each column, where groups aren't neighbouring columns.
  std::vector<int32_t> group_of = {};
};

// It stays packed where kernels read the format, and their scales of 11 bits hold the file's: a
// float32 model with float32 scales is read as numbers.
inline QuantisedMatrix integer_matrix(const IntegerFormat& format, const Extents& shape,
                                      std::function<IntegerMatrix()> make) {
  const int64_t row_length = shape[shape.rank() - 1];
  const bool is_channel = format.group_size == row_length;
  QuantisedMatrix matrix{
      .format = std::to_string(format.bits) + " bits " +
                (is_channel ? "with a scale for each row"
                            : "in groups of " + std::to_string(format.group_size)) +
                (format.group_of.empty() ? "" : ", reordered"),
      .shape = shape};
  const bool loses_bits = format.value_dtype == DType::f32 && format.scale_dtype == DType::f32;
  const bool are_whole =
      format.group_of.empty() || IntegerRows::are_equal_groups(format.group_of, format.group_size);
  if (are_whole && !loses_bits &&
      IntegerRows::kernels_read(format.bits, format.group_size, row_length)) {
    matrix.packed = [make = std::move(make)]() { return std::make_shared<IntegerRows>(make()); };
  } else {
    matrix.numbers = [make = std::move(make)]() { return std::make_shared<IntegerRows>(make()); };
  }
  return matrix;
}

}  // namespace paceline
