#include "paceline/linear.h"

#include <cmath>

#include "arrays/array_state.h"
#include "autodiff/shape_error.h"
#include "base/error.h"

namespace paceline::arrays {
namespace {

const Array& named(const NamedArrays& weights, const std::string& name) {
  const auto found = weights.find(name);
  if (found != weights.end()) return found->second;
  throw error_of(ErrorCode::not_found, "no array named {} among {}", name, weights.size());
}

// Uniform within 1 / sqrt(inputs).
Array drawn_within(const Shape& shape, int64_t inputs, RandomKey key) {
  const float bound = 1.0f / std::sqrt(static_cast<float>(inputs));
  return uniform(shape, key, -bound, bound);
}

void check_sizes(std::string_view layer, int64_t inputs, int64_t outputs) {
  if (inputs > 0 && outputs > 0) return;
  throw error_of(ErrorCode::invalid, "{}: {} inputs and {} outputs: expected at least one of each",
                 layer, inputs, outputs);
}

// x weight^T for x of any rank but 0.
Array product(std::string_view layer, const Array& x, const Array& weight) {
  const autodiff::Array &values = inner(layer, x), &matrix = inner(layer, weight);
  if (values.rank() == 0 || matrix.rank() != 2 || values.size(-1) != matrix.size(-1)) {
    autodiff::throw_shapes(layer, {values, matrix}, "[..., inputs] and weights [outputs, inputs]");
  }
  if (x.rank() > 1) return matmul(x, transpose(weight));
  return matmul(reshape(x, {1, x.size(0)}), transpose(weight))[0];
}

float scale_of(const LoraOptions& options) {
  if (options.rank > 0 && std::isfinite(options.alpha)) {
    return options.alpha / static_cast<float>(options.rank);
  }
  throw error_of(ErrorCode::invalid,
                 "LoraLinear: rank {} and alpha {}: expected a rank of at least 1 and a finite "
                 "alpha",
                 options.rank, options.alpha);
}

void check_pair(const LoraLinear& layer) {
  const autodiff::Array& weight = inner("LoraLinear", layer.base.weight);
  const autodiff::Array &a = inner("LoraLinear", layer.a), &b = inner("LoraLinear", layer.b);
  if (weight.rank() == 2 && a.rank() == 2 && b.rank() == 2 && a.size(1) == weight.size(1) &&
      b.size(0) == weight.size(0) && a.size(0) == b.size(1)) {
    return;
  }
  autodiff::throw_shapes("LoraLinear", {weight, a, b},
                         "weights [outputs, inputs], [rank, inputs] and [outputs, rank]");
}

}  // namespace

Linear Linear::create(int64_t inputs, int64_t outputs, RandomKey key, Bias bias) {
  check_sizes("Linear", inputs, outputs);
  Linear layer{.weight = drawn_within({outputs, inputs}, inputs, key)};
  if (bias == Bias::trained) {
    layer.bias = drawn_within({outputs}, inputs, key.after(layer.weight));
  }
  return layer;
}

Linear Linear::of(const NamedArrays& weights, const std::string& prefix) {
  Linear layer{.weight = named(weights, prefix + ".weight")};
  const auto bias = weights.find(prefix + ".bias");
  if (bias != weights.end()) layer.bias = bias->second;
  return layer;
}

void Linear::add_to(NamedArrays& weights, const std::string& prefix) const {
  weights[prefix + ".weight"] = weight;
  if (!bias.is_empty()) weights[prefix + ".bias"] = bias;
}

Array Linear::operator()(const Array& x) const {
  const Array y = product("Linear", x, weight);
  if (bias.is_empty()) return y;
  const autodiff::Array& term = inner("Linear", bias);
  if (term.rank() != 1 || term.size(0) != weight.size(0)) {
    autodiff::throw_shapes("Linear", {inner("Linear", weight), term},
                           "weights [outputs, inputs] and a bias [outputs]");
  }
  return y + bias;
}

LoraLinear LoraLinear::create(const Linear& base, const LoraOptions& options, RandomKey key) {
  const float scale = scale_of(options);
  const autodiff::Array& weight = inner("LoraLinear", base.weight);
  if (weight.rank() != 2) {
    autodiff::throw_shapes("LoraLinear", {weight}, "weights [outputs, inputs]");
  }
  check_sizes("LoraLinear", weight.size(1), weight.size(0));
  return {.base = base,
          .a = drawn_within({options.rank, weight.size(1)}, weight.size(1), key),
          .b = zeros({weight.size(0), options.rank}),
          .scale = scale};
}

LoraLinear LoraLinear::of(const Linear& base, const LoraOptions& options,
                          const NamedArrays& weights, const std::string& prefix) {
  LoraLinear layer{.base = base,
                   .a = named(weights, prefix + ".lora_A.weight"),
                   .b = named(weights, prefix + ".lora_B.weight"),
                   .scale = scale_of(options)};
  check_pair(layer);
  return layer;
}

void LoraLinear::add_to(NamedArrays& weights, const std::string& prefix) const {
  weights[prefix + ".lora_A.weight"] = a;
  weights[prefix + ".lora_B.weight"] = b;
}

Array LoraLinear::operator()(const Array& x) const {
  check_pair(*this);
  const Array low = product("LoraLinear", x, a);
  return base(x) + product("LoraLinear", low, b) * scale;
}

Linear LoraLinear::merged() const {
  check_pair(*this);
  return {.weight = convert(base.weight + matmul(b, a) * scale, base.weight.dtype()),
          .bias = base.bias};
}

}  // namespace paceline::arrays
