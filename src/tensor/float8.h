// The values of floats of 8 bits.
#pragma once

#include <array>

#include "tensor/dtype.h"

namespace paceline {

// By the byte: E4M3 and E5M2 of "FP8 Formats for Deep Learning" (arXiv 2209.05433; E4M3 has no
// infinities), E8M0 of the OCP Microscaling Formats 1.0 (2^(byte - 127); 255 is NaN).
const std::array<float, 256>& float8_values(DType dtype);

constexpr bool is_float8(DType dtype) { return dtype >= DType::f8_e4m3; }

}  // namespace paceline
