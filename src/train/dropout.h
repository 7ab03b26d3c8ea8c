// Dropout of a LoRA module's input (Srivastava et al., 2014), as a function of where an element
// stands in its training step.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/tensor.h"

namespace paceline {

class GradientOps;

// Of one forward and backward pass.
struct Dropout {
  double rate = 0;  // of elements that become 0; the others are divided by 1 - rate
  uint64_t seed = 0;
  int64_t step = 0;
  int64_t first_row = 0;  // of the batch, among all rows of the step

  bool is_on() const { return rate > 0; }
};

// out = x with dropped elements, in place or not. The same for equal dropouts and `module`s,
// whatever the micro-batch: element (r, c) depends on the seed, the step, the module, first_row + r
// and c alone. Row i of x is row batch_rows[i] of the batch, where there are some.
//                                       x, out [rows, width], rows contiguous
void drop_elements(GradientOps& gradients, const Dropout& dropout, uint64_t module,
                   std::span<const int32_t> batch_rows, const Tensor& x, const Tensor& out);

}  // namespace paceline
