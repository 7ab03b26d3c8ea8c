// Reads of plain packed matrices (kernels/packed_matrix.h), element by element.
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

}  // namespace paceline::cuda
