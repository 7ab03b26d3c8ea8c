#include "layers/decay_rates.h"

#include <cmath>
#include <utility>
#include <vector>

#include "layers/load_context.h"

namespace paceline {

OwnedTensor load_decay_rates(const LoadContext& context, const std::string& name, int64_t heads) {
  const std::string logarithms = name + ".A_log", negatives = name + ".A";
  if (auto prepared = prepared_vector(context, logarithms, heads)) return std::move(*prepared);
  const bool is_in_gguf =
      !context.weights.contains(logarithms) && context.weights.contains(negatives);
  std::vector<float> rates = read_vector(context, is_in_gguf ? negatives : logarithms, heads);
  for (float& rate : rates) {
    rate = is_in_gguf ? -rate : static_cast<float>(std::exp(double{rate}));
  }
  return store_vector(context, logarithms, rates);
}

Tensor heads_at(const Tensor& x, int64_t first, int64_t heads, int64_t size) {
  return x.as_strided({x.size(0), heads, size}, {x.stride(0), size, 1}, first);
}

}  // namespace paceline
