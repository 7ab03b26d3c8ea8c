// InputPanels are rows rounded to bfloat16, as products of many rows read them.
#pragma once

#include "kernels/cuda/code/packed_panels.h"

namespace paceline::cuda {

// Stages of panels of 32 rows like those of weights, [stages, panels, kStageWords]. Inputs behind
// the last are zero.
struct InputPanels {
  uint32_t* first = nullptr;
  uint32_t stages = 0;
  uint32_t panels = 0;  // of a stage in memory

  PL_DEVICE uint32_t* stage(int64_t panel, uint32_t index) const {
    return first + (int64_t{index} * panels + panel) * kStageWords;
  }
  PL_DEVICE void store(int64_t row, int64_t k, float value) const {
    const uint32_t word =
        core_word(static_cast<uint32_t>(k) / 2, static_cast<uint32_t>(row % kPanelWidth));
    uint32_t* const of_stage = stage(row / kPanelWidth, static_cast<uint32_t>(k) / kStageInputs);
    reinterpret_cast<uint16_t*>(of_stage + word)[k % 2] =
        static_cast<uint16_t>(pack_bf16(value, 0.0f));
  }
  // Inputs of a row from `begin` on, by all threads of a block.
  PL_DEVICE void clear_row(int64_t row, int64_t begin, uint32_t num_threads) const {
    for (int64_t k = begin + thread_index(); k < int64_t{stages} * kStageInputs; k += num_threads) {
      store(row, k, 0.0f);
    }
  }
};

}  // namespace paceline::cuda
