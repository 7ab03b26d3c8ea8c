// What layers whose states decay load and read alike.
#pragma once

#include <string>

#include "tensor/tensor.h"

namespace paceline {

struct LoadContext;

// Rates of decay [heads] of the layer `name`: exp of its A_log. GGUF files have the rates'
// negatives, A.
OwnedTensor load_decay_rates(const LoadContext& context, const std::string& name, int64_t heads);

// Columns of x [rows, width] from `first` on as [rows, heads, size].
Tensor heads_at(const Tensor& x, int64_t first, int64_t heads, int64_t size);

}  // namespace paceline
