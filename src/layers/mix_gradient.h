// What the gradient of a layer with a state reads, between the layer's products, and the weights of
// such a layer beside its products.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/gradients.h"
#include "kernels/operands.h"
#include "layers/kv_storage.h"
#include "tensor/tensor.h"

namespace paceline {

class Backend;

// Neighbouring sequences of a batch whose states exist at a time; their slices' rows are counted
// from the group's first.
struct StateGroup {
  int64_t first_row = 0;
  int64_t num_rows = 0;
  std::vector<StateSlice> slices;

  Tensor rows_of(const Tensor& x) const { return x.slice(0, first_row, first_row + num_rows); }
};

// A weight beside the layer's products. Passes have its values in a vector.
struct OwnWeight {
  std::string part;                // of its name in the files, within the layer: "conv1d.weight"
  Extents shape;                   // there
  bool is_transposed = false;      // passes have the last dimension first
  std::vector<float> values = {};  // as passes have them
  // How it begins from scratch: normal around `mean`.
  float mean = 0;
  float deviation = 0;
};

// Each sequence is whole, from position 0 on; the blocks of its group's slices are scratch.
struct MixGradientInputs {
  Tensor input;  // [rows, input width], as the first product made it
  Tensor kept;   // [rows, kept_width()], as mix() left it
  Tensor dout;   // [rows, mixed_width()]
  std::span<const SequenceRows> sequences;
  std::span<const StateGroup> groups;  // of the same sequences
  StateStore states;
  // To these the gradients of own_weights() are added, in their order and as passes have them;
  // empty: they aren't trained.            float32 [elements] each
  std::span<const Tensor> own_gradients = {};

  // Of an own weight, or null.
  const Tensor* own_gradient(size_t index) const {
    return own_gradients.empty() ? nullptr : &own_gradients[index];
  }
};

// A layer that has the gradient of what it does between its products.
template <class Part>
concept HasMixGradient = requires(const Part& part, Backend& backend, const MixGradientInputs& in,
                                  const Tensor& dinput) {
  part.mix_gradient(backend, in, dinput);
};

// A layer that has weights beside its products, which training replaces.
template <class Part>
concept HasOwnWeights = requires(const Part& part) {
  part.own_weights();
};

}  // namespace paceline
