// LoraTables are segments of add_lora as the kernels of code/lora.h take them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cuda/code/lora.h"
#include "kernels/cuda/device.h"
#include "kernels/operands.h"
#include "tensor/tensor.h"

namespace paceline::cuda {

struct LoraTables {
  std::vector<LoraShrink> shrinks;  // one for the segments of the same rows and matrix `a`
  std::vector<LoraExpand> expands;
  int64_t inner_width = 0;  // of a row
  int64_t most_ranks = 0;   // of a matrix `a`
  int64_t end_row = 0;

  void clear();
  // Segments come in the order of Backend::add_lora.
  void add(const LoraSegment& segment);

 private:
  const PackedMatrix* last_a_ = nullptr;
  int64_t row_inner_ = 0;  // inner sums of the last segment's rows so far
};

// The floats that the inner sums of `rows` rows need, for inputs of `width` elements.
int64_t lora_inner_floats(int64_t rows, int64_t inner_width, int64_t width);

// Runs both kernels, for matrices `a` of up to `most_ranks` rows. The params have the lists, the
// rows and the inner sums.
void launch_lora(CudaDevice& device, LoraParams params, int64_t most_ranks, const Tensor& x,
                 const Tensor& out);

}  // namespace paceline::cuda
