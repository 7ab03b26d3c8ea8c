// LayerInputs makes an input of each token for each layer, of a table and of the token's embedding;
// LayerInputGate adds it to what a layer computes (Gemma 3n's and Gemma 4's per-layer embeddings).
#pragma once

#include <array>
#include <optional>
#include <string>

#include "kernels/operands.h"
#include "layers/adapter_weights.h"
#include "layers/linear.h"
#include "layers/norm.h"
#include "layers/scratch.h"

namespace paceline {

struct LayerInputConfig {
  int64_t width = 0;       // elements for a layer
  int64_t vocab_size = 0;  // of the table; tokens beyond it have the inputs of token 0

  bool operator==(const LayerInputConfig&) const = default;
};

// What LayerInputs::make() takes of the arena.
struct LayerInputScratch {
  Tensor inputs;     // [rows, layers * width]
  Tensor projected;  // likewise; only make() uses it

  LayerInputScratch(Scratch& scratch, int64_t width_of_all, int64_t rows)
      : inputs(scratch.take_rows(rows, width_of_all)),
        projected(scratch.take_rows(rows, width_of_all)) {}
};

class LayerInputs {
 public:
  LayerInputs(const LoadContext& context, const LayerInputConfig& config, int64_t hidden_size,
              int64_t num_layers, const NormOptions& norm);

  // (norm(projection(embedded) / sqrt(hidden)) + table[tokens] * sqrt(width)) / sqrt(2) for each
  // layer's elements, [rows, layers * width].                      embedded [rows, hidden]
  Tensor make(Backend& backend, Indices<int32_t> tokens, const Tensor& embedded,
              Scratch& scratch) const;

  // The part of a layer.
  Tensor of_layer(const Tensor& inputs, int64_t layer) const {
    return inputs.slice(1, layer * config_.width, (layer + 1) * config_.width);
  }

  const Linear& projection() const { return projection_; }

 private:
  LayerInputConfig config_;
  int64_t hidden_size_;
  int64_t num_layers_;
  PackedMatrix table_;  // [vocab, layers * width]
  Linear projection_;
  Norm norm_;
};

// projection(activation(gate(x)) * input).
class LayerInputGate {
 public:
  // `block` is the canonical prefix of the block, e.g. "layers.0".
  LayerInputGate(const LoadContext& context, const std::string& block,
                 const LayerInputConfig& config, int64_t hidden_size, Activation activation);

  // In place.                                     x, out [rows, hidden], input [rows, width]
  void forward(Backend& backend, const Tensor& x, const Tensor& input,
               const BlockAdapters& adapters, Scratch& scratch, const Tensor& out) const;

  std::array<const Linear*, 2> products() const { return {&gate_, &projection_}; }

 private:
  int64_t width_;
  Activation activation_;
  Linear gate_;
  Linear projection_;
};

}  // namespace paceline
