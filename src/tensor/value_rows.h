// ValueRows is a quantised matrix, in any file format, that is read as numbers row by row.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/dtype.h"

namespace paceline {

// Several threads may read rows at once.
class ValueRows {
 public:
  virtual ~ValueRows() = default;

  virtual int64_t num_rows() const = 0;
  virtual int64_t row_length() const = 0;

  // A type that holds every element exactly: that of the format's reference implementation.
  virtual DType value_dtype() const = 0;

  // Reads one row's elements [row_length] with the bits of the format's reference implementation,
  // rounded to value_dtype().
  virtual void read_values(int64_t row, std::span<float> values) const = 0;
};

}  // namespace paceline
