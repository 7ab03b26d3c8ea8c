// NormedRows are the rows that the last operation, a norm, has written, and the same rows rounded:
// products of them need not round them again.
#pragma once

#include <cstdint>
#include <optional>

#include "base/divide_up.h"
#include "kernels/cuda/code/norms.h"
#include "tensor/tensor.h"

namespace paceline::cuda {

struct NormedRows {
  const float* first = nullptr;  // nullptr: none
  int64_t num_rows = 0;
  int64_t width = 0;
  int64_t stride = 0;
  InputPanels panels;

  NormedPanels packed() const { return {panels, num_rows}; }
  int64_t num_blocks(int64_t rows) const {
    return first == nullptr ? rows : divide_up(rows, kPanelWidth) * kPanelWidth;
  }
  // The panels of `x`, if it is some of these rows from the first of a panel on.
  std::optional<InputPanels> panels_of(const Tensor& x) const {
    const float* const x_first = x.elements<float>();
    if (first == nullptr || x.size(1) != width || x.stride(0) != stride || x_first < first) {
      return {};
    }
    const int64_t offset = x_first - first, row = offset / stride;
    if (offset % stride != 0 || row % kPanelWidth != 0 || row + x.size(0) > num_rows) return {};
    return InputPanels{panels.stage(row / kPanelWidth, 0), panels.stages, panels.panels};
  }
};

}  // namespace paceline::cuda
