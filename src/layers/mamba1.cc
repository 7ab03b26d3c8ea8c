#include "layers/mamba1.h"

#include <cmath>
#include <utility>

#include "kernels/backend.h"
#include "layers/load_context.h"

namespace paceline {
namespace {

Linear load_matrix(const LoadContext& context, const std::string& name, int64_t out_features,
                   int64_t in_features, bool has_bias = false) {
  const std::array<Projection, 1> parts = {{{name, out_features}}};
  return Linear(context, parts, in_features, has_bias ? Linear::Bias::stored : Linear::Bias::none);
}

ScanShape scan_shape(const Mamba1Config& config) {
  return {.channels = config.inner, .state_size = config.state_size};
}

ConvolutionShape inner_shape(const Mamba1Config& config) {
  return {.channels = config.inner, .taps = config.taps};
}

// Files have logarithms [inner, state_size], A_log; GGUF files the rates' negatives, A.
OwnedTensor load_scan_rates(const LoadContext& context, const std::string& name,
                            const Mamba1Config& config) {
  const int64_t inner = config.inner, size = config.state_size;
  const std::string logarithms = name + ".A_log", negatives = name + ".A";
  if (auto prepared = prepared_vector(context, logarithms, inner * size)) {
    return std::move(*prepared);
  }
  const bool is_in_gguf =
      !context.weights.contains(logarithms) && context.weights.contains(negatives);
  const std::vector<float> stored =
      read_elements(context, is_in_gguf ? negatives : logarithms, {inner, size});
  std::vector<float> rates(stored.size());
  for (int64_t channel = 0; channel < inner; ++channel) {
    for (int64_t n = 0; n < size; ++n) {
      const float element = stored[static_cast<size_t>(channel * size + n)];
      rates[static_cast<size_t>(n * inner + channel)] =
          is_in_gguf ? -element : static_cast<float>(std::exp(double{element}));
    }
  }
  return store_vector(context, logarithms, rates);
}

std::array<OwnedTensor, 3> load_step_norms(const LoadContext& context, const std::string& name,
                                           const Mamba1Config& config) {
  const auto load = [&](const std::string& part, int64_t size) {
    if (config.norms == StepNorms::weighted) {
      return load_vector(context, name + "." + part + "_layernorm.weight", size);
    }
    return write_vector(context.backend, std::vector<float>(static_cast<size_t>(size), 1.0f));
  };
  if (config.norms == StepNorms::none) return {};
  return {load("dt", config.step_rank), load("b", config.state_size), load("c", config.state_size)};
}

}  // namespace

LayerStateElements Mamba1Config::state_elements() const {
  return {.convolution = elements_of(inner_shape(*this)),
          .matrices = elements_of(scan_shape(*this))};
}

// Time steps are decay gates of rate -1.
Mamba1::Mamba1(const LoadContext& context, const std::string& name, int64_t hidden_size,
               const Mamba1Config& config)
    : config_(config),
      input_(
          load_matrix(context, name + ".in_proj", 2 * config.inner, hidden_size, config.has_bias)),
      convolution_(context, name + ".conv1d", inner_shape(config), config.convolution_bias),
      parts_(load_matrix(context, name + ".x_proj", config.parts_width(), config.inner)),
      steps_(load_matrix(context, name + ".dt_proj", config.inner, config.step_rank)),
      step_bias_(load_vector(context, name + ".dt_proj.bias", config.inner)),
      skip_(load_vector(context, name + ".D", config.inner)),
      rates_(load_scan_rates(context, name, config)),
      step_rates_(write_vector(context.backend,
                               std::vector<float>(static_cast<size_t>(config.inner), -1.0f))),
      norm_weights_(load_step_norms(context, name, config)),
      output_(
          load_matrix(context, name + ".out_proj", hidden_size, config.inner, config.has_bias)) {}

Mamba1::ScanParts Mamba1::parts_of(const Tensor& product) const {
  const int64_t b = config_.step_rank, c = b + config_.state_size;
  return {.steps = product.slice(1, 0, b),
          .b = product.slice(1, b, c),
          .c = product.slice(1, c, config_.parts_width())};
}

void Mamba1::normalise(Backend& backend, const ScanParts& parts) const {
  if (config_.norms == StepNorms::none) return;
  const std::array<Tensor, 3> all = {parts.steps, parts.b, parts.c};
  for (size_t i = 0; i < all.size(); ++i) {
    backend.rms_norm(all[i], norm_weights_[i].view, config_.norm_eps, all[i]);
  }
}

Mamba1Scratch::Mamba1Scratch(Scratch& scratch, const Mamba1Config& config, int64_t rows)
    : input(scratch.take_rows(rows, 2 * config.inner)),
      mixed(scratch.take_rows(rows, config.inner)),
      product(scratch.take_rows(rows, config.parts_width())),
      steps(scratch.take_rows(rows, config.inner)) {}

void Mamba1::scan(Backend& backend, const StateSlices& slices, const StateMemory& states,
                  const Mamba1Scratch& taken) const {
  RecurrentOps& ops = *backend.recurrent();
  const auto& [input, mixed, product, steps] = taken;
  parts_.forward(backend, mixed, product);
  const ScanParts parts = parts_of(product);
  normalise(backend, parts);
  steps_.forward(backend, parts.steps, steps);
  ops.decay_gates(steps, step_bias_.view, step_rates_.view, {}, steps);
  ops.selective_scan(
      scan_shape(config_),
      {.x = mixed,
       .steps = steps,
       .b = parts.b,
       .c = parts.c,
       .rates = rates_.view.as_strided({config_.state_size, config_.inner}, {config_.inner, 1}),
       .skip = skip_.view},
      slices, states, mixed);
}

void Mamba1::forward(Backend& backend, const Tensor& x, const StateSlices& slices,
                     const BlockAdapters& adapters, const StateStore& states, Scratch& scratch,
                     const Tensor& out) const {
  const Scratch::Frame frame(scratch);
  const int64_t inner = config_.inner;
  const Mamba1Scratch taken(scratch, config_, x.size(0));
  const Tensor &input = taken.input, &mixed = taken.mixed;
  input_.forward(backend, x, input);
  adapters.add(backend, BlockProduct::qkv, x, input);
  convolution_.forward(*backend.recurrent(), input.slice(1, 0, inner), slices, states.convolution,
                       mixed);
  backend.activation(config_.activation, mixed, mixed);
  scan(backend, slices, states.matrices, taken);
  backend.gated_activation(Activation::silu, input.slice(1, inner, 2 * inner), mixed, mixed);
  output_.forward(backend, mixed, out);
  adapters.add(backend, BlockProduct::output, mixed, out);
}

void Mamba1::list_weights(std::vector<const PackedMatrix*>& weights) const {
  for (const Linear* const product : {&input_, &parts_, &steps_, &output_}) {
    for (const PackedMatrix& weight : product->weights()) weights.push_back(&weight);
  }
}

}  // namespace paceline
