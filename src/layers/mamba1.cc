#include "layers/mamba1.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "kernels/backend.h"
#include "kernels/recurrent_gradients.h"
#include "layers/decay_rates.h"
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

constexpr std::array<std::string_view, 3> kStepNormNames = {"dt_layernorm", "b_layernorm",
                                                            "c_layernorm"};

std::array<OwnedTensor, 3> load_step_norms(const LoadContext& context, const std::string& name,
                                           const Mamba1Config& config) {
  const auto load = [&](std::string_view part, int64_t size) {
    if (config.norms == StepNorms::weighted) {
      return load_vector(context, fmt::format("{}.{}.weight", name, part), size);
    }
    return write_vector(context.backend, std::vector<float>(static_cast<size_t>(size), 1.0f));
  };
  if (config.norms == StepNorms::none) return {};
  return {load(kStepNormNames[0], config.step_rank), load(kStepNormNames[1], config.state_size),
          load(kStepNormNames[2], config.state_size)};
}

// Indices of own weights; norms are behind the convolution's.
constexpr size_t kScanStepBias = 0, kScanRates = 1, kScanSkip = 2, kScanConvolution = 3;

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

void Mamba1::normalise(Backend& backend, const ScanParts& parts, const ScanParts& out) const {
  normalise_part(backend, kOfSteps, parts.steps, out.steps);
  normalise_part(backend, kOfB, parts.b, out.b);
  normalise_part(backend, kOfC, parts.c, out.c);
}

void Mamba1::normalise_part(Backend& backend, size_t part, const Tensor& x,
                            const Tensor& out) const {
  if (config_.norms != StepNorms::none) {
    return backend.rms_norm(x, norm_weights_[part].view, config_.norm_eps, out);
  }
  if (x.raw() != out.raw()) backend.scale(x, std::array{1.0f}, out);
}

void Mamba1::normalise_part_gradient(Backend& backend, const MixGradientInputs& in, size_t part,
                                     const Tensor& x, const Tensor& dy, const Tensor& dx) const {
  if (config_.norms == StepNorms::none) return backend.scale(dy, std::array{1.0f}, dx);
  const bool is_trained = config_.norms == StepNorms::weighted && !in.own_gradients.empty();
  backend.gradients().rms_norm_gradient(
      {.x = x, .weight = norm_weights_[part].view, .dy = dy}, config_.norm_eps, dx,
      is_trained ? in.own_gradient(first_norm() + part) : nullptr);
}

ScanInputs Mamba1::scan_inputs(const Tensor& mixed, const Tensor& steps,
                               const ScanParts& parts) const {
  return {.x = mixed,
          .steps = steps,
          .b = parts.b,
          .c = parts.c,
          .rates = rates_.view.as_strided({config_.state_size, config_.inner}, {config_.inner, 1}),
          .skip = skip_.view};
}

Mamba1Scratch::Mamba1Scratch(Scratch& scratch, const Mamba1Config& config, int64_t rows)
    : input(scratch.take_rows(rows, 2 * config.inner)),
      mixed(scratch.take_rows(rows, config.inner)),
      product(scratch.take_rows(rows, config.parts_width())),
      steps(scratch.take_rows(rows, config.inner)) {}

void Mamba1::scan(Backend& backend, const StateSlices& slices, const BlockAdapters& adapters,
                  const StateMemory& states, const Mamba1Scratch& taken) const {
  RecurrentOps& ops = *backend.recurrent();
  const auto& [input, mixed, product, steps] = taken;
  parts_.forward(backend, mixed, product);
  adapters.add(backend, BlockProduct::scan_parts, mixed, product);
  const ScanParts parts = parts_of(product);
  normalise(backend, parts, parts);
  steps_.forward(backend, parts.steps, steps);
  adapters.add(backend, BlockProduct::scan_steps, parts.steps, steps);
  ops.decay_gates(steps, step_bias_.view, step_rates_.view, {}, steps);
  ops.selective_scan(scan_shape(config_), scan_inputs(mixed, steps, parts), slices, states, mixed);
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
  scan(backend, slices, adapters, states.matrices, taken);
  backend.gated_activation(Activation::silu, input.slice(1, inner, 2 * inner), mixed, mixed);
  output_.forward(backend, mixed, out);
  adapters.add(backend, BlockProduct::output, mixed, out);
}

void Mamba1::convolve(Backend& backend, const Tensor& input, const StateSlices& slices,
                      const StateStore& states, const Tensor& mixed) const {
  convolution_.forward(*backend.recurrent(), input.slice(1, 0, config_.inner), slices,
                       states.convolution, mixed);
  backend.activation(config_.activation, mixed, mixed);
}

void Mamba1::convolve_gradient(Backend& backend, const MixGradientInputs& in, const Tensor& dmixed,
                               const Tensor& dinput) const {
  const Tensor channels = in.input.slice(1, 0, config_.inner);
  const OwnedTensor convolved = allocate_rows(backend.memory(), channels.size(0), config_.inner);
  const OwnedTensor gradient = allocate_rows(backend.memory(), channels.size(0), config_.inner);
  convolution_.forward(*backend.recurrent(), channels, in.groups, in.states.convolution,
                       convolved.view);
  backend.gradients().activation_gradient(config_.activation, convolved.view, dmixed,
                                          gradient.view);
  backend.clear(dinput);
  convolution_.gradient(*backend.recurrent_gradients(), gradient.view, in.sequences,
                        dinput.slice(1, 0, config_.inner));
  convolution_.add_own_gradients(backend, in, channels, gradient.view, kScanConvolution);
}

void Mamba1::read_steps(Backend& backend, const Tensor& product, const Tensor& out) const {
  normalise_part(backend, kOfSteps, parts_of(product).steps, out);
}

void Mamba1::read_steps_gradient(Backend& backend, const MixGradientInputs& in,
                                 const Tensor& product, const Tensor& dsteps,
                                 const Tensor& dproduct) const {
  backend.clear(dproduct);
  normalise_part_gradient(backend, in, kOfSteps, parts_of(product).steps, dsteps,
                          parts_of(dproduct).steps);
}

void Mamba1::scan_rows(Backend& backend, const Mamba1Rows& rows, const StateSlices& slices,
                       const StateStore& states, const Tensor& kept, const Tensor& out) const {
  RecurrentOps& ops = *backend.recurrent();
  const int64_t inner = config_.inner, num_rows = rows.mixed.size(0);
  const OwnedTensor product = allocate_rows(backend.memory(), num_rows, config_.parts_width());
  const OwnedTensor steps = allocate_rows(backend.memory(), num_rows, inner);
  const ScanParts stored = parts_of(rows.product), parts = parts_of(product.view);
  normalise_part(backend, kOfB, stored.b, parts.b);
  normalise_part(backend, kOfC, stored.c, parts.c);
  ops.decay_gates(rows.steps, step_bias_.view, step_rates_.view, {}, steps.view);
  ops.selective_scan(scan_shape(config_), scan_inputs(rows.mixed, steps.view, parts), slices,
                     states.matrices, kept);
  backend.gated_activation(Activation::silu, rows.input.slice(1, inner, 2 * inner), kept, out);
}

void Mamba1::scan_gradient(Backend& backend, const MixGradientInputs& in, const Mamba1Rows& rows,
                           const Mamba1Rows& drows) const {
  RecurrentGradientOps& recurrent = *backend.recurrent_gradients();
  const int64_t inner = config_.inner, num_rows = rows.mixed.size(0);
  const auto take = [&](int64_t width) { return allocate_rows(backend.memory(), num_rows, width); };
  const OwnedTensor dread = take(inner);
  backend.clear(drows.input);
  backend.gradients().gated_activation_gradient(
      Activation::silu,
      {.gate = rows.input.slice(1, inner, 2 * inner), .up = in.kept, .dout = in.dout},
      drows.input.slice(1, inner, 2 * inner), dread.view);

  const OwnedTensor product = take(config_.parts_width()), dproduct = take(config_.parts_width());
  const OwnedTensor steps = take(inner), dsteps = take(inner);
  const ScanParts stored = parts_of(rows.product), parts = parts_of(product.view);
  const ScanParts d = parts_of(dproduct.view), dstored = parts_of(drows.product);
  normalise_part(backend, kOfB, stored.b, parts.b);
  normalise_part(backend, kOfC, stored.c, parts.c);
  backend.recurrent()->decay_gates(rows.steps, step_bias_.view, step_rates_.view, {}, steps.view);
  Tensor drates;
  if (const Tensor* const of_rates = in.own_gradient(kScanRates)) {
    drates = of_rates->as_strided({config_.state_size, inner}, {inner, 1});
  }
  recurrent.selective_scan_gradient(
      scan_shape(config_),
      {.forward = scan_inputs(rows.mixed, steps.view, parts), .dout = dread.view}, in.sequences,
      {.dx = drows.mixed,
       .dsteps = dsteps.view,
       .db = d.b,
       .dc = d.c,
       .dlog_rates = in.own_gradients.empty() ? nullptr : &drates});
  recurrent.decay_gates_gradient({.x = rows.steps,
                                  .bias = step_bias_.view,
                                  .rates = step_rates_.view,
                                  .range = {},
                                  .dout = dsteps.view},
                                 drows.steps);
  backend.clear(drows.product);
  normalise_part_gradient(backend, in, kOfB, stored.b, d.b, dstored.b);
  normalise_part_gradient(backend, in, kOfC, stored.c, d.c, dstored.c);
  if (in.own_gradients.empty()) return;
  backend.gradients().bias_gradient(drows.steps, *in.own_gradient(kScanStepBias));
  backend.recurrent()->multiply(dread.view, rows.mixed, dread.view);
  backend.gradients().bias_gradient(dread.view, *in.own_gradient(kScanSkip));
}

size_t Mamba1::first_norm() const { return kScanConvolution + convolution_.num_own_weights(); }

std::vector<OwnWeight> Mamba1::own_weights() const {
  OwnWeight step_bias = own_step_bias(step_bias_);
  step_bias.part = "dt_proj.bias";
  OwnWeight rates = own_decay_rates(rates_);
  rates.shape = {config_.inner, config_.state_size};
  rates.is_transposed = true;
  std::vector<OwnWeight> weights = {std::move(step_bias), std::move(rates),
                                    own_vector("D", skip_, 1.0f)};
  convolution_.list_own_weights("conv1d", weights);
  if (config_.norms != StepNorms::weighted) return weights;
  for (size_t i = 0; i < kStepNormNames.size(); ++i) {
    weights.push_back(
        own_vector(fmt::format("{}.weight", kStepNormNames[i]), norm_weights_[i], 1.0f));
  }
  return weights;
}

void Mamba1::set_own_weights(Backend& backend, std::span<const std::vector<float>> values) {
  step_bias_ = write_vector(backend, values[kScanStepBias]);
  rates_ = decay_rates_of(backend, values[kScanRates]);
  skip_ = write_vector(backend, values[kScanSkip]);
  convolution_.set_own_weights(backend, values, kScanConvolution);
  if (config_.norms != StepNorms::weighted) return;
  for (size_t i = 0; i < norm_weights_.size(); ++i) {
    norm_weights_[i] = write_vector(backend, values[first_norm() + i]);
  }
}

void Mamba1::list_weights(std::vector<const PackedMatrix*>& weights) const {
  for (const Linear* const product : {&input_, &parts_, &steps_, &output_}) {
    for (const PackedMatrix& weight : product->weights()) weights.push_back(&weight);
  }
}

}  // namespace paceline
