// Reads of packed matrices (kernels/packed_matrix.h, kernels/packed_groups.h), element by element.
#pragma once

#include "kernels/cuda/code/element_types.h"
#include "kernels/packed_layout.h"

namespace paceline::cuda {

// Columns and inputs of a matrix are counted in 32 bits, bytes in 64.
struct PlainPanels {
  const std::byte* first = nullptr;
  int64_t panel_bytes = 0;  // from a panel to the next
  uint32_t k = 0;
  int64_t stage_bytes = 0;  // of bfloat16: from a stage to the next

  PL_DEVICE const std::byte* panel_of(int64_t column) const {
    return first + column / kPanelWidth * panel_bytes;
  }
};

// Element (k, column) of a float32 or float16 matrix.
template <class Stored>
PL_DEVICE float plain_element(const PlainPanels& panels, uint32_t k, int64_t column) {
  const auto* const elements = reinterpret_cast<const Stored*>(panels.panel_of(column));
  return element_value(elements[int64_t{k} * kPanelWidth + column % kPanelWidth]);
}

// A bfloat16 matrix stands as core matrices (code/core_matrices.h), in stages of 64 inputs: a stage
// has groups of 8 columns one after another, of 8 core matrices each. So the columns of a tile are
// neighbouring bytes, which one copy fetches: a thread needs over 100 cycles for each on Hopper.
// Stages are padded with zeros, and their columns to whole panels.
constexpr uint32_t kStepInputs = 16;  // that a matrix instruction adds
constexpr uint32_t kStageSteps = 4;
constexpr uint32_t kStageInputs = kStageSteps * kStepInputs;
constexpr uint32_t kCoreBytes = 128;
constexpr uint32_t kCoreColumns = 8;
constexpr uint32_t kCoreGroupBytes = kStageInputs / 8 * kCoreBytes;  // of a group of columns
constexpr uint32_t kPanelGroups = uint32_t{kPanelWidth} / kCoreColumns;
constexpr uint32_t kStageBytes = kPanelGroups * kCoreGroupBytes;
constexpr uint32_t kStageWords = kStageBytes / 4;
constexpr uint32_t kStagePairs = kStageInputs / 2;
constexpr uint32_t kStepPairs = kStepInputs / 2;

constexpr int64_t num_steps(int64_t inputs) { return (inputs + kStepInputs - 1) / kStepInputs; }
constexpr int64_t num_stages(int64_t inputs) { return (inputs + kStageInputs - 1) / kStageInputs; }

// The place in their stage of inputs 2 * pair and 2 * pair + 1 of a panel's column, the first in
// the low half.
PL_DEVICE uint32_t core_word(uint32_t pair, uint32_t column) {
  const uint32_t in_stage = pair % kStagePairs;
  return column / kCoreColumns * (kCoreGroupBytes / 4) + in_stage / 4 * (kCoreBytes / 4) +
         column % kCoreColumns * 4 + in_stage % 4;
}

PL_DEVICE uint32_t bf16_pair(const PlainPanels& panels, uint32_t pair, int64_t column) {
  const auto* const words = reinterpret_cast<const uint32_t*>(
      panels.panel_of(column) + pair / kStagePairs * panels.stage_bytes);
  return words[core_word(pair, static_cast<uint32_t>(column % kPanelWidth))];
}

// Quantised panels. Sizes of groups and records are powers of two.
struct GroupedPanels {
  const std::byte* first = nullptr;
  int64_t panel_bytes = 0;
  uint32_t k = 0;
  uint32_t record_bytes = 0;
  uint32_t scale_bytes = 0;     // of a record
  uint32_t multiple_bytes = 0;  // of a group; 0 where each group has its own factors
  uint32_t code_bytes = 0;      // of a group
  uint32_t group_bits = 0;      // log2 of a group's inputs
  uint32_t record_bits = 0;     // log2 of a record's groups
  uint32_t low_width = 0;       // bits of a code in the plane of low bits
  uint32_t high_width = 0;      // and in that of high bits
  float zero_point = 0.0f;
  bool has_offsets = false;
};

// What turns the codes of a group and a column into elements.
struct GroupAffine {
  const uint8_t* codes = nullptr;  // of the group, all columns
  float scale = 0.0f;
  float offset = 0.0f;
};

PL_DEVICE GroupAffine load_group(const GroupedPanels& panels, uint32_t group, int64_t column) {
  const auto* const panel =
      reinterpret_cast<const uint8_t*>(panels.first + column / kPanelWidth * panels.panel_bytes);
  const auto lane = static_cast<uint32_t>(column % kPanelWidth);
  const float factor = reinterpret_cast<const float*>(panel)[lane];
  const uint32_t record = group >> panels.record_bits;
  const uint32_t index = group & ((1u << panels.record_bits) - 1);
  const uint8_t* const scales =
      panel + kPanelWidth * 4 + int64_t{record} * int64_t{panels.record_bytes};
  const auto* const halves = reinterpret_cast<const F16*>(scales);
  const auto* const multiples =
      reinterpret_cast<const int8_t*>(scales + panels.scale_bytes + index * panels.multiple_bytes);
  // One number of the column: from the scales, or the offsets behind them.
  const auto number = [&](uint32_t place) {
    const float shared = to_float(halves[place * kPanelWidth + lane]) * factor;
    if (panels.multiple_bytes == 0) return shared;
    return shared * static_cast<float>(multiples[place * kPanelWidth + lane]);
  };
  GroupAffine affine;
  affine.codes = scales + panels.scale_bytes + (panels.multiple_bytes << panels.record_bits) +
                 index * panels.code_bytes;
  affine.scale = number(0);
  affine.offset = panels.has_offsets ? number(1) : -panels.zero_point * affine.scale;
  return affine;
}

// The bits of code `k` of a group and column in a plane of `width` bits per code.
PL_DEVICE uint32_t plane_bits(const uint8_t* plane, uint32_t width, uint32_t k, uint32_t lane) {
  const uint32_t in_byte = 8 / width, j = k / 4;
  const uint32_t byte = plane[(j / in_byte * kPanelWidth + lane) * 4 + k % 4];
  return byte >> (j % in_byte * width) & ((1u << width) - 1);
}

PL_DEVICE uint32_t load_code(const GroupedPanels& panels, const uint8_t* codes, uint32_t k,
                             uint32_t lane) {
  const uint32_t low = plane_bits(codes, panels.low_width, k, lane);
  if (panels.high_width == 0) return low;
  const uint8_t* const high_plane =
      codes + ((kPanelWidth * panels.low_width) << panels.group_bits) / 8;
  return low | plane_bits(high_plane, panels.high_width, k, lane) << panels.low_width;
}

// The element as unpack_row() has it: one fused multiply-add of the code.
PL_DEVICE float group_element(const GroupedPanels& panels, const GroupAffine& affine, uint32_t k,
                              int64_t column) {
  const uint32_t in_group = k & ((1u << panels.group_bits) - 1);
  const auto lane = static_cast<uint32_t>(column % kPanelWidth);
  const uint32_t code = load_code(panels, affine.codes, in_group, lane);
  return fused_multiply_add(affine.scale, static_cast<float>(code), affine.offset);
}

PL_DEVICE float group_element(const GroupedPanels& panels, uint32_t k, int64_t column) {
  return group_element(panels, load_group(panels, k >> panels.group_bits, column), k, column);
}

}  // namespace paceline::cuda
