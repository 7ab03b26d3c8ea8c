// What the gradient of a layer with a state reads, between the layer's products.
#pragma once

#include <span>

#include "kernels/gradients.h"
#include "kernels/operands.h"
#include "layers/kv_storage.h"
#include "tensor/tensor.h"

namespace paceline {

class Backend;

// Each sequence is whole, from position 0 on; its slice's blocks are scratch.
struct MixGradientInputs {
  Tensor input;  // [rows, input width], as the first product made it
  Tensor kept;   // [rows, kept_width()], as mix() left it
  Tensor dout;   // [rows, mixed_width()]
  std::span<const SequenceRows> sequences;
  StateSlices slices;
  StateStore states;
};

// A layer that has the gradient of what it does between its products.
template <class Part>
concept HasMixGradient = requires(const Part& part, Backend& backend, const MixGradientInputs& in,
                                  const Tensor& dinput) {
  part.mix_gradient(backend, in, dinput);
};

}  // namespace paceline
