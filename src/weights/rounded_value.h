// Rounds float32 numbers to another float type.
#pragma once

#include <span>

#include "tensor/dtype.h"

namespace paceline {

inline void round_values(DType dtype, std::span<float> values) {
  if (dtype == DType::f32) return;
  with_float_dtype(dtype, [&]<class T>() {
    for (float& value : values) value = to_float(from_float<T>(value));
  });
}

}  // namespace paceline
