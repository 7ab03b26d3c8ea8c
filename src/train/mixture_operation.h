// A mixture of experts on arrays, with the bits of the serving forward.
#pragma once

#include "autodiff/array.h"
#include "layers/mixture.h"
#include "train/mixture_training.h"

namespace paceline {

class Backend;

// x [rows, hidden] -> the same shape. The gradient goes through the chosen experts and through
// their weights to the router's logits; the choice itself has none. The experts are computed again
// for it. The gradients of what is trained are added to theirs when the backward pass comes to the
// operation. A and B see x with dropped elements. All must outlive the array.
autodiff::Array apply_mixture(Backend& backend, const Mixture& mixture,
                              const MixtureTraining& training, const Dropout& dropout,
                              const autodiff::Array& x);

}  // namespace paceline
