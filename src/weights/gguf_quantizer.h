// Quantises rows of numbers to GGUF's blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "weights/gguf_type.h"

namespace paceline {

// Whether quantize_gguf_row() writes the type: F32, F16, BF16, Q4_0, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K
// and Q6_K.
bool can_write_gguf_type(GgufType type);

// Bytes of a row of `length` elements, whole blocks.
size_t gguf_row_bytes(GgufType type, int64_t length);

// Writes a row of whole blocks. Q4_0, Q5_0, Q5_1 and Q8_0 are those of gguf-py's quants.py, byte
// for byte. In the K types each group's scale and minimum have the least squared error of some
// candidates, weighted by `importance` where there is one (not negative, one for each element), and
// their multiples of the block's factors are the best of their neighbours. False when a number
// isn't finite in the type; the row is then unspecified.
bool quantize_gguf_row(GgufType type, std::span<const float> values,
                       std::span<const float> importance, std::byte* row);

}  // namespace paceline
