// The block formats of GGUF: decoding of their bytes to codes, scales and offsets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/grouped_rows.h"
#include "weights/gguf_type.h"

namespace paceline {

// Scales and offsets of the groups of blocks. Without `scales` a factor is a group's scale.
struct GgufScales {
  float* factors = nullptr;         // [blocks], or [groups] where a block has several
  float* offset_factors = nullptr;  // likewise, where there is no zero point
  int8_t* scales = nullptr;         // [groups], where groups share factors
  int8_t* offsets = nullptr;        // [groups], where they have both
};

struct GgufBlockFormat {
  GgufType type = GgufType::q4_0;
  Grouping grouping;
  // Decodes `num_blocks` blocks that follow each other.
  void (*decode)(const std::byte* blocks, size_t num_blocks, uint8_t* codes,
                 GgufScales scales) = nullptr;
};

// All of them.
std::span<const GgufBlockFormat> gguf_block_formats();
// Null for F32, F16 and BF16.
const GgufBlockFormat* find_block_format(GgufType type);

// The scale and offset of each of `num_groups` groups, rounded to float32 where gguf-py
// (gguf/quants.py) rounds them, so that grouped_values() are bit for bit what its dequantize()
// returns.
void group_scales(const Grouping& grouping, size_t num_groups, const GgufScales& stored,
                  float* scales, float* offsets);

// The elements of one group, in gguf-py's order of operations.
void grouped_values(const Grouping& grouping, const uint8_t* codes, float scale, float offset,
                    float* values);

}  // namespace paceline
