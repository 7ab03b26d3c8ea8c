// Linear layers of arrays, and those that a pair of LoRA matrices adapts.
//
// They are values: a function whose gradient is wanted makes them of the weights that it is given.
//   value_and_grad([&](const NamedArrays& w) { return mse(Linear::of(w, "out")(x), y); })(weights)
#pragma once

#include <cstdint>
#include <string>

#include "paceline/array.h"

namespace paceline::arrays {

enum class Bias : bool { none, trained };

// y = x weight^T + bias
struct Linear {
  Array weight;  // [outputs, inputs]
  Array bias{};  // [outputs], or empty: none

  // Weights and biases uniform within 1 / sqrt(inputs), as torch.nn.Linear. Uses the counters of
  // both arrays, the weight's first.
  static Linear create(int64_t inputs, int64_t outputs, RandomKey key, Bias bias = Bias::trained);
  // PREFIX.weight and, if it is there, PREFIX.bias. Errors: not_found.
  static Linear of(const NamedArrays& weights, const std::string& prefix);
  void add_to(NamedArrays& weights, const std::string& prefix) const;

  // x [..., inputs]; [..., outputs]
  Array operator()(const Array& x) const;
};

struct LoraOptions {
  int64_t rank = 8;
  float alpha = 16.0f;
};

// y = base(x) + scale (x a^T) b^T, with scale = alpha / rank (Hu et al., arXiv 2106.09685). To
// train a and b alone, the base's arrays are captured, or stop_gradient() of others.
struct LoraLinear {
  Linear base;
  Array a;  // [rank, inputs]
  Array b;  // [outputs, rank]
  float scale = 1.0f;

  // a uniform within 1 / sqrt(inputs), b zero, as PEFT: at first the layer is its base.
  static LoraLinear create(const Linear& base, const LoraOptions& options, RandomKey key);
  // PREFIX.lora_A.weight and PREFIX.lora_B.weight, the names of PEFT. Errors: not_found.
  static LoraLinear of(const Linear& base, const LoraOptions& options, const NamedArrays& weights,
                       const std::string& prefix);
  void add_to(NamedArrays& weights, const std::string& prefix) const;  // a and b

  Array operator()(const Array& x) const;
  // The layer that computes the same without a pair: weight + scale b a.
  Linear merged() const;
};

}  // namespace paceline::arrays
