#include "models/pooled_head.h"

#include <utility>

#include "kernels/backend.h"
#include "layers/scratch.h"

namespace paceline {
namespace {

std::vector<float> to_floats(const Tensor& vector) {
  std::vector<float> elements(static_cast<size_t>(vector.num_elements()));
  copy_elements(vector, Tensor(elements.data(), DType::f32, {vector.num_elements()}));
  return elements;
}

}  // namespace

void PooledHead::add(Backend& backend, const Tensor& weight, const Tensor* bias,
                     Activation activation) {
  Layer layer{.weight = backend.pack_matrix(std::span(&weight, 1), DType::f32),
              .bias = {},
              .activation = activation};
  if (bias != nullptr) layer.bias = write_vector(backend, to_floats(*bias));
  layers_.push_back(std::move(layer));
}

void PooledHead::add_norm(Backend& backend, const Tensor& weight, const Tensor* bias, float eps) {
  Layer& layer = layers_.back();
  layer.norm_weight = write_vector(backend, to_floats(weight));
  if (bias != nullptr) layer.norm_bias = write_vector(backend, to_floats(*bias));
  layer.norm_eps = eps;
}

void PooledHead::activate(Backend& backend, Activation kind, const Tensor& x) {
  switch (kind) {
    case Activation::none:
      return;
    case Activation::tanh:
      return backend.soft_cap(x, 1.0f, x);  // cap * tanh(x / cap) with a cap of 1
    case Activation::relu:
      return backend.activation(paceline::Activation::relu, x, x);
    case Activation::gelu:
      return backend.activation(paceline::Activation::gelu_erf, x, x);
  }
}

std::span<const float> PooledHead::forward(Backend& backend, std::span<const float> pooled,
                                           int64_t count) {
  if (layers_.empty() || count == 0) return pooled;
  result_ = allocate_tensor(backend.memory(), DType::f32, {count, std::ssize(pooled) / count});
  backend.write(pooled, result_.view);
  for (const Layer& layer : layers_) {
    OwnedTensor out = allocate_tensor(backend.memory(), DType::f32, {count, layer.weight.n});
    backend.matmul(result_.view, layer.weight, layer.bias ? &layer.bias->view : nullptr, out.view);
    activate(backend, layer.activation, out.view);
    if (layer.norm_weight) {
      const Tensor* const bias = layer.norm_bias ? &layer.norm_bias->view : nullptr;
      backend.layer_norm(out.view, layer.norm_weight->view, bias, layer.norm_eps, out.view);
    }
    result_ = std::move(out);
  }
  return backend.read(result_.view, staging_);
}

}  // namespace paceline
