#include "layers/layer_inputs.h"

#include <cmath>
#include <memory>
#include <vector>

#include "kernels/backend.h"
#include "layers/load_context.h"

namespace paceline {
namespace {

Linear load_linear(const LoadContext& context, const std::string& name, int64_t in, int64_t out) {
  return Linear(context, std::array{Projection{name, out}}, in, Linear::Bias::none);
}

}  // namespace

LayerInputs::LayerInputs(const LoadContext& context, const LayerInputConfig& config,
                         int64_t hidden_size, int64_t num_layers, const NormOptions& norm)
    : config_(config),
      hidden_size_(hidden_size),
      num_layers_(num_layers),
      table_(load_table(context, "embed_tokens_per_layer.weight", config.vocab_size,
                        num_layers * config.width)),
      projection_(load_linear(context, "per_layer_model_projection", hidden_size,
                              num_layers * config.width)),
      norm_(context, "per_layer_projection_norm", config.width, norm) {}

Tensor LayerInputs::make(Backend& backend, Indices<int32_t> tokens, const Tensor& embedded,
                         Scratch& scratch) const {
  const int64_t rows = embedded.size(0), width = num_layers_ * config_.width;
  const auto& [inputs, projected] = LayerInputScratch(scratch, width, rows);
  projection_.forward(backend, embedded, projected);
  const auto hidden = static_cast<float>(hidden_size_);
  backend.scale(projected, std::array{1.0f / std::sqrt(hidden)}, projected);
  const Tensor layers = projected.as_strided({rows, num_layers_, config_.width},
                                             {projected.stride(0), config_.width, 1});
  norm_.forward(backend, layers, layers);
  std::vector<int32_t> ids(tokens.host().begin(), tokens.host().end());
  for (int32_t& id : ids) {
    if (id >= config_.vocab_size) id = 0;
  }
  backend.embedding(table_, ids, std::sqrt(static_cast<float>(config_.width)), inputs);
  backend.add(projected, inputs, inputs);
  backend.scale(inputs, std::array{1.0f / std::sqrt(2.0f)}, inputs);
  return inputs;
}

LayerInputGate::LayerInputGate(const LoadContext& context, const std::string& block,
                               const LayerInputConfig& config, int64_t hidden_size,
                               Activation activation)
    : width_(config.width),
      activation_(activation),
      gate_(load_linear(context, block + ".per_layer_input_gate", hidden_size, config.width)),
      projection_(
          load_linear(context, block + ".per_layer_projection", config.width, hidden_size)) {}

void LayerInputGate::forward(Backend& backend, const Tensor& x, const Tensor& input,
                             const BlockAdapters& adapters, Scratch& scratch,
                             const Tensor& out) const {
  const Scratch::Frame frame(scratch);
  const Tensor inner = scratch.take_rows(x.size(0), width_);
  gate_.forward(backend, x, inner);
  adapters.add(backend, BlockProduct::input_gate, x, inner);
  backend.gated_activation(activation_, inner, input, inner);
  projection_.forward(backend, inner, out);
  adapters.add(backend, BlockProduct::input_projection, inner, out);
}

}  // namespace paceline
