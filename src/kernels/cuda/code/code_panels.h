// Quantised matrices as a GPU has them: codes in the order in which matrix instructions take them.
#pragma once

#include "kernels/cuda/code/rows.h"
#include "kernels/cuda/code/small_floats.h"
#include "kernels/packed_layout.h"

namespace paceline::cuda {

// A panel of 32 columns is two tiles of 16: tile h has columns 4 g + 2 h and the next, as rows g
// and g + 8 of operand a of mma_bf16(): sides 0 and 1 of pair g. A tile is
//   head       [16] float32 factors of the columns (packed_groups.h), by pair and side, and a word,
//              the CodeForm that all groups allow
//   numbers    of each record: scales [16] float16, and offsets [16] where groups have their own
//   multiples  of each group, where they share numbers: of scales [16] int8, and of offsets
//   codes      units of 64 inputs: a plane of the codes' low bits, then one of their high bits
// all with zeros behind a row's end, up to a multiple of kPaddedInputs.
// A plane has the words of lane 4 g + t beside each other (at most 4: where codes have 8 bits, the
// other 4 stand 512 bytes behind). Of step s of a unit, their bytes 0, 2, 1 and 3 have the codes of
// inputs 4 t to 4 t + 3: field 2 s of side 0, field 2 s + 1 of side 1, the first fields in the
// lowest bits.
constexpr uint32_t kUnitInputs = 64;
constexpr uint32_t kUnitSteps = 4;
constexpr uint32_t kPaddedInputs = 128;
constexpr uint32_t kTileColumns = 16;
constexpr uint32_t kCodeHeadBytes = 128;
constexpr uint32_t kFormPlace = kTileColumns * 4;   // of the head's word
constexpr uint32_t kLaneBytes = 16;                 // that a lane loads at once
constexpr uint32_t kVectorBytes = 32 * kLaneBytes;  // of a warp

// Sizes of groups and records are powers of two.
struct GroupedPanels {
  const std::byte* first = nullptr;
  int64_t panel_bytes = 0;  // of two tiles
  uint32_t k = 0;
  uint32_t group_bits = 0;       // log2 of a group's inputs
  uint32_t record_bits = 0;      // log2 of a record's inputs
  uint32_t number_bytes = 0;     // of a record
  uint32_t multiple_bytes = 0;   // of a group; 0 where each group has its own numbers
  uint32_t multiples_place = 0;  // in a tile
  uint32_t codes_place = 0;
  uint32_t low_width = 0;   // bits of a code in the plane of low bits
  uint32_t high_width = 0;  // and in that of high bits
  float zero_point = 0.0f;
  bool has_offsets = false;

  PL_DEVICE uint32_t unit_bytes() const {
    return kTileColumns * kUnitInputs / 8 * (low_width + high_width);
  }
};

// Where a column stands.
struct TileColumn {
  const std::byte* tile;
  uint32_t pair;
  uint32_t side;

  PL_DEVICE uint32_t index() const { return 2 * pair + side; }
};

PL_DEVICE TileColumn tile_column(const GroupedPanels& panels, int64_t column) {
  const auto in_panel = static_cast<uint32_t>(column % kPanelWidth);
  return {panels.first + column / kPanelWidth * panels.panel_bytes +
              in_panel % 4 / 2 * (panels.panel_bytes / 2),
          in_panel / 4, in_panel % 2};
}

// What turns the codes of a group and a column into elements.
struct GroupAffine {
  float scale = 0.0f;
  float offset = 0.0f;
};

PL_DEVICE GroupAffine load_group(const GroupedPanels& panels, uint32_t group, int64_t column) {
  const TileColumn at = tile_column(panels, column);
  const float factor = reinterpret_cast<const float*>(at.tile)[at.index()];
  const uint32_t record = group << panels.group_bits >> panels.record_bits;
  const auto* const halves = reinterpret_cast<const F16*>(at.tile + kCodeHeadBytes +
                                                          int64_t{record} * panels.number_bytes);
  const auto* const multiples = reinterpret_cast<const int8_t*>(
      at.tile + panels.multiples_place + int64_t{group} * panels.multiple_bytes);
  // One number of the column: from the scales, or the offsets behind them.
  const auto number = [&](uint32_t place) {
    const float shared = to_float(halves[place * kTileColumns + at.index()]) * factor;
    if (panels.multiple_bytes == 0) return shared;
    return shared * static_cast<float>(multiples[place * kTileColumns + at.index()]);
  };
  GroupAffine affine;
  affine.scale = number(0);
  affine.offset = panels.has_offsets ? number(1) : -panels.zero_point * affine.scale;
  return affine;
}

// The bytes from a plane to its word with field `field` of lane 4 * pair + t of a unit.
PL_DEVICE uint32_t plane_place(uint32_t width, uint32_t lane, uint32_t field) {
  const uint32_t word = field * width / 8, of_lane = width < 4 ? width : 4;
  return word / 4 * kVectorBytes + (lane * of_lane + word % 4) * 4;
}

// The fields of a plane's word that hold four inputs of a column, a code in each byte.
PL_DEVICE uint32_t plane_quad(const std::byte* unit_plane, uint32_t width, uint32_t lane,
                              uint32_t field) {
  const auto word =
      *reinterpret_cast<const uint32_t*>(unit_plane + plane_place(width, lane, field));
  return word >> field * width % 8 & ((1u << width) - 1) * 0x01010101u;
}

// The codes of inputs 4 * quad to 4 * quad + 3 of a column, one in each byte.
PL_DEVICE uint32_t load_quad(const GroupedPanels& panels, uint32_t quad, int64_t column) {
  const TileColumn at = tile_column(panels, column);
  const uint32_t lane = 4 * at.pair + quad % 4, field = quad / 4 % kUnitSteps * 2 + at.side;
  const std::byte* const low =
      at.tile + panels.codes_place + int64_t{quad / 16} * panels.unit_bytes();
  uint32_t codes = plane_quad(low, panels.low_width, lane, field);
  if (panels.high_width > 0) {
    const std::byte* const high = low + kTileColumns * kUnitInputs / 8 * panels.low_width;
    codes |= plane_quad(high, panels.high_width, lane, field) << panels.low_width;
  }
  return permute_bytes(codes, 0, 0x3120);
}

// The element as unpack_row() has it: one fused multiply-add of the code.
PL_DEVICE float quad_element(const GroupAffine& affine, uint32_t quad, uint32_t byte) {
  return fused_multiply_add(affine.scale, static_cast<float>(quad >> 8 * byte & 0xFFu),
                            affine.offset);
}

PL_DEVICE float group_element(const GroupedPanels& panels, uint32_t k, int64_t column) {
  return quad_element(load_group(panels, k >> panels.group_bits, column),
                      load_quad(panels, k / 4, column), k % 4);
}

// What codes may be made of elements by, with the bits of the rule: one fused multiply-add in
// float32, rounded to bfloat16.
enum class CodeForm : uint32_t {
  whole,    // as the rule has it
  shifted,  // codes as 128 + code: where the offset that takes the 128 back is exact, as both are
            // then the same number, rounded once
  paired,   // two codes at once in bfloat16, of 4 bits: where the numbers are exact in it and each
            // code's element is rounded alike
};
constexpr float kCodeShift = 128.0f;

}  // namespace paceline::cuda
