// A mixture of experts on arrays, with the bits of the serving forward. Its weights are frozen.
#pragma once

#include "autodiff/array.h"
#include "layers/mixture.h"

namespace paceline {

class Backend;

// x [rows, hidden] -> the same shape. The gradient goes through the chosen experts and through
// their weights to the router's logits; the choice itself has none. The experts are computed again
// for it. `mixture` and `backend` must outlive the array.
autodiff::Array apply_mixture(Backend& backend, const Mixture& mixture, const autodiff::Array& x);

}  // namespace paceline
