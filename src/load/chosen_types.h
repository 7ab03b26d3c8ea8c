// The types that the options of loading choose. Each function throws Error invalid for a type that
// its option doesn't take.
#pragma once

#include <optional>

#include "kernels/packed_groups.h"
#include "paceline/options.h"
#include "tensor/dtype.h"

namespace paceline {

// Of the weights: `automatic` unless --dtype names another one.
DType choose_dtype(DataType dtype, DType automatic);
// Of stored keys and values.
DType choose_kv_dtype(DataType dtype, DType automatic);
// Of the states of layers that have some.
DType choose_state_dtype(DataType dtype);
// Of the inputs of products; nothing: quantised weights are dequantised.
std::optional<ActivationType> choose_activations(Activations activations);

}  // namespace paceline
