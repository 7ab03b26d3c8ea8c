// PooledHead makes an embedding, or scores of labels, of a text's pooled state: a few products in
// float32.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/packed_matrix.h"
#include "tensor/tensor.h"

namespace paceline {

class Backend;

class PooledHead {
 public:
  enum class Activation : uint8_t { none, tanh, relu, gelu };

  // Adds a layer: activation(x * weight^T + bias). `weight` [outputs, inputs] and `bias` [outputs]
  // are a checkpoint's; without a bias `bias` is nullptr.
  void add(Backend& backend, const Tensor& weight, const Tensor* bias, Activation activation);
  // A layer norm of what the last layer makes.  weight, bias [its outputs], as in add()
  void add_norm(Backend& backend, const Tensor& weight, const Tensor* bias, float eps);

  bool empty() const { return layers_.empty(); }
  // Elements of a result, for pooled states of `hidden_size` elements.
  int64_t output_size(int64_t hidden_size) const {
    return layers_.empty() ? hidden_size : layers_.back().weight.n;
  }

  // pooled [count, inputs of the first layer] -> [count, output_size], valid until the next call.
  // A row has the same bits alone and beside others.
  std::span<const float> forward(Backend& backend, std::span<const float> pooled, int64_t count);

 private:
  static void activate(Backend& backend, Activation kind, const Tensor& x);

  struct Layer {
    PackedMatrix weight;
    std::optional<OwnedTensor> bias;
    Activation activation = Activation::none;
    std::optional<OwnedTensor> norm_weight = {}, norm_bias = {};
    float norm_eps = 0.0f;
  };

  std::vector<Layer> layers_;
  std::vector<float> staging_;
  OwnedTensor result_;  // of the last call
};

}  // namespace paceline
