// What layers whose states decay load and read alike.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "layers/mix_gradient.h"
#include "layers/norm.h"
#include "tensor/tensor.h"

namespace paceline {

class Backend;
struct LoadContext;

// Rates of decay [heads * repeats] of the layer `name`: exp of its A_log, each `repeats` times.
// GGUF files have the rates' negatives, A.
OwnedTensor load_decay_rates(const LoadContext& context, const std::string& name, int64_t heads,
                             int64_t repeats = 1);

// Indices among the own weights of such layers.
constexpr size_t kOwnStepBias = 0, kOwnDecayRates = 1;
// A_log again, as trained.
OwnWeight own_decay_rates(const OwnedTensor& rates);
OwnedTensor decay_rates_of(Backend& backend, std::span<const float> logarithms);
// A vector of the layer's.
OwnWeight own_vector(std::string part, const OwnedTensor& values, float mean, float deviation = 0);
OwnWeight own_norm_weight(const std::string& name, const Norm& norm);
// dt_bias, which begins where time steps are about 0.01.
OwnWeight own_step_bias(const OwnedTensor& values);

// Adds the gradient of A_log, of decays and theirs, of which it replaces the latter.
void add_decay_rates_gradient(Backend& backend, const Tensor& decay, const Tensor& ddecay,
                              const Tensor& gradient);

// Columns of x [rows, width] from `first` on as [rows, heads, size].
Tensor heads_at(const Tensor& x, int64_t first, int64_t heads, int64_t size);

}  // namespace paceline
