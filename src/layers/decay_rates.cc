#include "layers/decay_rates.h"

#include <cmath>
#include <utility>
#include <vector>

#include "kernels/backend.h"
#include "kernels/recurrent.h"
#include "layers/load_context.h"
#include "layers/scratch.h"

namespace paceline {
namespace {

// [heads], in Kimi's files [1, 1, heads, 1].
Extents shape_of_rates(const LoadContext& context, const std::string& name, int64_t heads) {
  const Extents padded = {1, 1, heads, 1};
  return context.weights.shape_of(name) == padded ? padded : Extents{heads};
}

}  // namespace

OwnedTensor load_decay_rates(const LoadContext& context, const std::string& name, int64_t heads,
                             int64_t repeats) {
  const std::string logarithms = name + ".A_log", negatives = name + ".A";
  if (auto prepared = prepared_vector(context, logarithms, heads * repeats)) {
    return std::move(*prepared);
  }
  const bool is_in_gguf =
      !context.weights.contains(logarithms) && context.weights.contains(negatives);
  const std::string& stored = is_in_gguf ? negatives : logarithms;
  std::vector<float> rates;
  for (const float element :
       read_elements(context, stored, shape_of_rates(context, stored, heads))) {
    const float rate = is_in_gguf ? -element : static_cast<float>(std::exp(double{element}));
    rates.insert(rates.end(), static_cast<size_t>(repeats), rate);
  }
  return store_vector(context, logarithms, rates);
}

OwnWeight own_vector(std::string part, const OwnedTensor& values, float mean, float deviation) {
  return {.part = std::move(part),
          .shape = values.view.shape(),
          .values = elements_of(values),
          .mean = mean,
          .deviation = deviation};
}

OwnWeight own_norm_weight(const std::string& name, const Norm& norm) {
  const Tensor& weight = norm.weight();
  const auto* const begin = weight.elements<float>();
  return {.part = name + ".weight",
          .shape = weight.shape(),
          .values = {begin, begin + weight.num_elements()},
          .mean = 1.0f};
}

OwnWeight own_step_bias(const OwnedTensor& values) {
  return own_vector("dt_bias", values, -4.6f, 1.0f);
}

OwnWeight own_decay_rates(const OwnedTensor& rates) {
  OwnWeight weight = own_vector("A_log", rates, 2.0f, 0.5f);
  for (float& value : weight.values) value = static_cast<float>(std::log(double{value}));
  return weight;
}

OwnedTensor decay_rates_of(Backend& backend, std::span<const float> logarithms) {
  std::vector<float> rates(logarithms.begin(), logarithms.end());
  for (float& rate : rates) rate = static_cast<float>(std::exp(double{rate}));
  return write_vector(backend, rates);
}

// Decays are proportional to rates.
void add_decay_rates_gradient(Backend& backend, const Tensor& decay, const Tensor& ddecay,
                              const Tensor& gradient) {
  backend.recurrent()->multiply(ddecay, decay, ddecay);
  backend.gradients().bias_gradient(ddecay, gradient);
}

Tensor heads_at(const Tensor& x, int64_t first, int64_t heads, int64_t size) {
  return x.as_strided({x.size(0), heads, size}, {x.stride(0), size, 1}, first);
}

}  // namespace paceline
