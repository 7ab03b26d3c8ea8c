// Products of up to 8 rows with quantised weights, as matmul_few.h has them: a lane turns codes
// into bfloat16 in registers.
//
// A word of a plane has the codes of a column's next 4 inputs, and of more where they are narrower
// than 8 bits, so that 8 bytes are two columns of inputs 4 q to 4 q + 3: a lane's part of a step.
// It loads everything that a format may have, whether this one has it or not (then from a place
// that is there), so that no branch stands between loads.
#pragma once

#include "kernels/cuda/code/matmul_few.h"

namespace paceline::cuda {

// kIsFull: any format; else one without planes of high bits and without multiples.
template <bool kIsFull>
class GroupTile {
 public:
  struct Plain {
    Words2 low;
    uint32_t scales, offsets;  // of two columns, float16 each
  };
  struct Full : Plain {
    Words2 high;
    uint16_t scale_multiples, offset_multiples;  // of two columns
  };
  using Panels = GroupedPanels;
  using Loaded = std::conditional_t<kIsFull, Full, Plain>;
  static constexpr uint32_t kMostInFlight = kIsFull ? 4 : 16;
  static constexpr std::string_view kPrefix = kIsFull ? "any_group_" : "group_";

  PL_DEVICE GroupTile(const GroupColumns& columns, int64_t index)
      : panels_(columns.weights),
        panel_(reinterpret_cast<const uint8_t*>(columns.panel(index / 2))),
        column_(column(static_cast<uint32_t>(index % 2), 0)),
        factors_(load_as<Floats2>(panel_ + column_ * sizeof(float))) {}

  PL_DEVICE static uint32_t column(uint32_t half, uint32_t i) {
    return 4 * lane_group() + 2 * half + i;
  }

  PL_DEVICE Loaded load(uint32_t step) const {
    const uint32_t k = step * kStepInputs;
    const uint32_t group = k >> panels_.group_bits, record = group >> panels_.record_bits;
    const uint32_t index = group & ((1u << panels_.record_bits) - 1);
    const uint8_t* const scales =
        panel_ + kPanelWidth * 4 + int64_t{record} * int64_t{panels_.record_bytes};
    const uint8_t* const multiples = scales + panels_.scale_bytes;
    const uint8_t* const codes =
        multiples + (panels_.multiple_bytes << panels_.record_bits) + index * panels_.code_bytes;
    constexpr uint32_t kHalfBytes = kPanelWidth * 2;
    const uint32_t quad = quad_of(k), offset_bytes = panels_.has_offsets ? 1 : 0;
    Loaded loaded;
    loaded.low = load_ahead<Words2>(plane_place(codes, panels_.low_width, quad));
    loaded.scales = load_ahead<uint32_t>(scales + column_ * 2);
    loaded.offsets = load_ahead<uint32_t>(scales + column_ * 2 + offset_bytes * kHalfBytes);
    if constexpr (kIsFull) {
      const uint32_t low_bytes =
          ((uint32_t{kPanelWidth} * panels_.low_width) << panels_.group_bits) / 8;
      const bool has_high = panels_.high_width > 0, has_multiples = panels_.multiple_bytes > 0;
      loaded.high =
          load_ahead<Words2>(plane_place(has_high ? codes + low_bytes : codes,
                                         has_high ? panels_.high_width : panels_.low_width, quad));
      const uint8_t* const own =
          (has_multiples ? multiples + index * panels_.multiple_bytes : scales) + column_;
      loaded.scale_multiples = load_ahead<uint16_t>(own);
      loaded.offset_multiples =
          load_ahead<uint16_t>(own + (has_multiples ? offset_bytes * kPanelWidth : 0));
    }
    return loaded;
  }

  PL_DEVICE Words4 operand(const Loaded& loaded, uint32_t step) const {
    const uint32_t quad = quad_of(step * kStepInputs);
    const uint32_t low_shift = quad * panels_.low_width % 8;
    const uint32_t low_mask = (1u << panels_.low_width) - 1;
    Words4 words;
    PL_UNROLL
    for (int i = 0; i < 2; ++i) {
      float scale = number(loaded.scales, i), offset = number(loaded.offsets, i);
      if constexpr (kIsFull) {
        if (panels_.multiple_bytes > 0) {
          scale = scale * multiple(loaded.scale_multiples, i);
          offset = offset * multiple(loaded.offset_multiples, i);
        }
      }
      if (!panels_.has_offsets) offset = -panels_.zero_point * scale;
      const auto element = [&](uint32_t input) {
        uint32_t code = loaded.low.words[i] >> (8 * input + low_shift) & low_mask;
        if constexpr (kIsFull) {
          const uint32_t shift = 8 * input + quad * panels_.high_width % 8;
          const uint32_t mask = (1u << panels_.high_width) - 1;  // 0 without high bits
          code |= (loaded.high.words[i] >> shift & mask) << panels_.low_width;
        }
        return fused_multiply_add(scale, small_integer(code), offset);
      };
      words.words[i] = pack_bf16(element(0), element(1));
      words.words[2 + i] = pack_bf16(element(2), element(3));
    }
    return words;
  }

 private:
  struct alignas(8) Floats2 {
    float of[2];
  };

  PL_DEVICE uint32_t quad_of(uint32_t k) const {
    return (k & ((1u << panels_.group_bits) - 1)) / 4 + lane_in_group();
  }
  PL_DEVICE const uint8_t* plane_place(const uint8_t* plane, uint32_t width, uint32_t quad) const {
    return plane + (quad * width / 8 * kPanelWidth + column_) * 4;
  }
  // From a column's factor (load_group()).
  PL_DEVICE float number(uint32_t halves, int column) const {
    return to_float(F16{static_cast<uint16_t>(halves >> 16 * column)}) * factors_.of[column];
  }
  PL_DEVICE static float multiple(uint16_t bytes, int column) {
    return static_cast<float>(static_cast<int8_t>(bytes >> 8 * column));
  }
  // A whole number below 2^23, without the slower conversion: 2^23 + code less 2^23 is exact.
  PL_DEVICE static float small_integer(uint32_t code) {
    return float_of_bits(0x4B000000u | code) - 8388608.0f;
  }

  const GroupedPanels& panels_;
  const uint8_t* panel_;
  uint32_t column_;
  Floats2 factors_;
};

template <bool kIsFull, uint32_t kTiles, uint32_t kSplits>
using MatmulFewRowsOfGroups = FewRows<GroupTile<kIsFull>, 1, kTiles, kSplits>;

}  // namespace paceline::cuda
