#include "layers/mamba2.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "kernels/backend.h"
#include "kernels/recurrent_gradients.h"
#include "layers/decay_rates.h"
#include "layers/head_products.h"
#include "layers/load_context.h"

namespace paceline {
namespace {

Linear load_product(const LoadContext& context, const std::string& name, int64_t out_features,
                    int64_t in_features, bool has_bias) {
  const std::array<Projection, 1> parts = {{{name, out_features}}};
  return Linear(context, parts, in_features, has_bias ? Linear::Bias::stored : Linear::Bias::none);
}

DeltaShape sum_shape(const Mamba2Config& config) {
  return {.key_heads = config.groups,
          .value_heads = config.heads,
          .key_dim = config.state_size,
          .value_dim = config.head_dim,
          .corrects = false};
}

ConvolutionShape channels_shape(const Mamba2Config& config) {
  return {.channels = config.channels(), .taps = config.taps};
}

std::optional<Norm> load_gated_norm(const LoadContext& context, const std::string& name,
                                    const Mamba2Config& config) {
  if (config.norm == GatedNorm::none) return std::nullopt;
  return Norm(context, name, config.inner(), {.eps = config.norm_eps});
}

// Indices of own weights, after those of decay; that of the norm is the last.
constexpr size_t kMambaSkip = 2, kMambaConvolution = 3;

}  // namespace

LayerStateElements Mamba2Config::state_elements() const {
  return {.convolution = elements_of(channels_shape(*this)),
          .matrices = elements_of(sum_shape(*this))};
}

// Time steps are decay gates of rate -1.
Mamba2::Mamba2(const LoadContext& context, const std::string& name, int64_t hidden_size,
               const Mamba2Config& config)
    : config_(config),
      input_(load_product(context, name + ".in_proj", config.input_width(), hidden_size,
                          config.input_bias)),
      convolution_(context, name + ".conv1d", channels_shape(config), config.convolution_bias),
      step_bias_(load_vector(context, name + ".dt_bias", config.heads)),
      decay_rates_(load_decay_rates(context, name, config.heads)),
      skip_(load_vector(context, name + ".D", config.heads)),
      step_rates_(write_vector(context.backend,
                               std::vector<float>(static_cast<size_t>(config.heads), -1.0f))),
      norm_(load_gated_norm(context, name + ".norm", config)),
      output_(load_product(context, name + ".out_proj", hidden_size, config.inner(),
                           config.output_bias)) {}

Mamba2::InputParts Mamba2::parts_of(const Tensor& input) const {
  const int64_t inner = config_.inner(), decay = inner + config_.channels();
  return {.gates = input.slice(1, 0, inner),
          .channels = input.slice(1, inner, decay),
          .decay = input.slice(1, decay, config_.input_width())};
}

bool Mamba2::has_scales() const {
  return std::ranges::any_of(config_.input_scales, [](float scale) { return scale != 1.0f; });
}

void Mamba2::scale_parts(Backend& backend, const Tensor& input, const Tensor& out) const {
  const int64_t inner = config_.inner(), keys = config_.groups * config_.state_size;
  const std::array<int64_t, 5> widths = {inner, inner, keys, keys, config_.heads};
  const bool is_in_place = input.raw() == out.raw();
  int64_t first = 0;
  for (size_t i = 0; i < widths.size(); ++i) {
    const int64_t end = first + widths[i];
    const float scale = config_.input_scales[i];
    if (scale != 1.0f || !is_in_place) {
      backend.scale(input.slice(1, first, end), std::array{scale}, out.slice(1, first, end));
    }
    first = end;
  }
}

Tensor Mamba2::scaled(Backend& backend, const Tensor& input, OwnedTensor& copy) const {
  if (!has_scales()) return input;
  copy = allocate_rows(backend.memory(), input.size(0), input.size(1));
  scale_parts(backend, input, copy.view);
  return copy.view;
}

void Mamba2::prepare_gates(Backend& backend, const InputParts& input,
                           const Buffers& buffers) const {
  RecurrentOps& ops = *backend.recurrent();
  const GateRange& range = config_.time_steps;
  ops.decay_gates(input.decay, step_bias_.view, step_rates_.view, range, buffers.steps);
  ops.decay_gates(input.decay, step_bias_.view, decay_rates_.view, range, buffers.decay);
}

DeltaInputs Mamba2::sum_inputs(const Buffers& buffers) const {
  const int64_t inner = config_.inner(), keys = config_.groups * config_.state_size;
  return {.q = heads_at(buffers.mixed, inner + keys, config_.groups, config_.state_size),
          .k = heads_at(buffers.mixed, inner, config_.groups, config_.state_size),
          .v = heads_of(buffers.mixed),
          .log_decay = buffers.decay,
          .beta = buffers.steps,
          .skip = &skip_.view};
}

Tensor Mamba2::heads_of(const Tensor& values) const {
  return heads_at(values, 0, config_.heads, config_.head_dim);
}

void Mamba2::run(Backend& backend, const InputParts& input, const StateSlices& slices,
                 const StateStore& states, const Buffers& buffers) const {
  convolution_.forward(*backend.recurrent(), input.channels, slices, states.convolution,
                       buffers.mixed);
  prepare_gates(backend, input, buffers);
  backend.activation(config_.activation, buffers.mixed, buffers.mixed);
  backend.recurrent()->delta_rule(sum_shape(config_), sum_inputs(buffers), slices, states.matrices,
                                  heads_of(buffers.read));
}

Mamba2Scratch::Mamba2Scratch(Scratch& scratch, const Mamba2Config& config, int64_t rows)
    : input(scratch.take_rows(rows, config.input_width())),
      mixed(scratch.take_rows(rows, config.channels())),
      steps(scratch.take_rows(rows, config.heads)),
      read(scratch.take_rows(rows, config.inner())) {}

void Mamba2::forward(Backend& backend, const Tensor& x, const StateSlices& slices,
                     const BlockAdapters& adapters, const StateStore& states, Scratch& scratch,
                     const Tensor& out) const {
  const Scratch::Frame frame(scratch);
  const auto& [input, mixed, steps, read] = Mamba2Scratch(scratch, config_, x.size(0));
  input_.forward(backend, x, input);
  adapters.add(backend, BlockProduct::qkv, x, input);
  scale_parts(backend, input, input);
  const InputParts parts = parts_of(input);
  run(backend, parts, slices, states,
      {.mixed = mixed, .steps = steps, .decay = parts.decay, .read = read});
  gate(backend, parts.gates, read, read);
  output_.forward(backend, read, out);
  adapters.add(backend, BlockProduct::output, read, out);
}

void Mamba2::gate(Backend& backend, const Tensor& gates, const Tensor& read,
                  const Tensor& out) const {
  if (config_.norm == GatedNorm::norm_first) {
    normalise(backend, read, out);
    return backend.gated_activation(Activation::silu, gates, out, out);
  }
  backend.gated_activation(Activation::silu, gates, read, out);
  if (config_.norm == GatedNorm::gate_first) normalise(backend, out, out);
}

void Mamba2::normalise(Backend& backend, const Tensor& x, const Tensor& out) const {
  const int64_t size = config_.inner() / config_.groups;
  for (int64_t begin = 0; begin < config_.inner(); begin += size) {
    const int64_t end = begin + size;
    backend.rms_norm(x.slice(1, begin, end), norm_->weight().slice(0, begin, end), norm_->eps(),
                     out.slice(1, begin, end));
  }
}

void Mamba2::mix(Backend& backend, const Tensor& input, const StateSlices& slices,
                 const StateStore& states, const Tensor& kept, const Tensor& out) const {
  const int64_t rows = input.size(0), heads = config_.heads;
  const OwnedTensor mixed = allocate_rows(backend.memory(), rows, config_.channels());
  const OwnedTensor steps = allocate_rows(backend.memory(), rows, heads);
  const OwnedTensor decay = allocate_rows(backend.memory(), rows, heads);
  OwnedTensor copy;
  const InputParts parts = parts_of(scaled(backend, input, copy));
  run(backend, parts, slices, states,
      {.mixed = mixed.view, .steps = steps.view, .decay = decay.view, .read = kept});
  gate(backend, parts.gates, kept, out);
}

void Mamba2::normalise_gradient(Backend& backend, const Tensor& x, const Tensor& dy,
                                const Tensor& dx, const Tensor* dweight) const {
  const int64_t size = config_.inner() / config_.groups;
  for (int64_t begin = 0; begin < config_.inner(); begin += size) {
    const int64_t end = begin + size;
    const Tensor of_weight = dweight != nullptr ? dweight->slice(0, begin, end) : Tensor();
    backend.gradients().rms_norm_gradient({.x = x.slice(1, begin, end),
                                           .weight = norm_->weight().slice(0, begin, end),
                                           .dy = dy.slice(1, begin, end)},
                                          norm_->eps(), dx.slice(1, begin, end),
                                          dweight != nullptr ? &of_weight : nullptr);
  }
}

// Back through the gates of the output and its norm.
void Mamba2::gate_gradient(Backend& backend, const MixGradientInputs& in, const Tensor& dread,
                           const Tensor& dgates) const {
  const Tensor gates = parts_of(in.input).gates;
  const Tensor* const weight =
      norm_ && !in.own_gradients.empty() ? &in.own_gradients.back() : nullptr;
  const OwnedTensor between = allocate_rows(backend.memory(), dread.size(0), config_.inner());
  GradientOps& gradients = backend.gradients();
  if (config_.norm == GatedNorm::norm_first) {
    normalise(backend, in.kept, between.view);
    gradients.gated_activation_gradient(
        Activation::silu, {.gate = gates, .up = between.view, .dout = in.dout}, dgates, dread);
    return normalise_gradient(backend, in.kept, dread, dread, weight);
  }
  Tensor dgated = in.dout;
  if (config_.norm == GatedNorm::gate_first) {
    backend.gated_activation(Activation::silu, gates, in.kept, between.view);
    normalise_gradient(backend, between.view, in.dout, between.view, weight);
    dgated = between.view;
  }
  gradients.gated_activation_gradient(
      Activation::silu, {.gate = gates, .up = in.kept, .dout = dgated}, dgates, dread);
}

void Mamba2::mix_gradient(Backend& backend, const MixGradientInputs& stored,
                          const Tensor& dinput) const {
  OwnedTensor copy;
  MixGradientInputs in = stored;
  in.input = scaled(backend, stored.input, copy);
  RecurrentGradientOps& recurrent = *backend.recurrent_gradients();
  const int64_t rows = in.input.size(0), heads = config_.heads, channels = config_.channels();
  const auto take = [&](int64_t width) { return allocate_rows(backend.memory(), rows, width); };
  const InputParts input = parts_of(in.input), d = parts_of(dinput);
  const OwnedTensor dread = take(config_.inner());
  gate_gradient(backend, in, dread.view, d.gates);

  const OwnedTensor convolved = take(channels), mixed = take(channels);
  const OwnedTensor steps = take(heads), decay = take(heads);
  convolution_.forward(*backend.recurrent(), input.channels, in.groups, in.states.convolution,
                       convolved.view);
  prepare_gates(backend, input, {.steps = steps.view, .decay = decay.view});
  backend.activation(config_.activation, convolved.view, mixed.view);

  const OwnedTensor dmixed = take(channels), dsteps = take(heads), ddecay = take(heads);
  const DeltaInputs of = sum_inputs({.mixed = dmixed.view});
  recurrent.delta_rule_gradient(
      sum_shape(config_),
      {.forward = sum_inputs({.mixed = mixed.view, .steps = steps.view, .decay = decay.view}),
       .dout = heads_of(dread.view)},
      in.sequences,
      {.dq = of.q, .dk = of.k, .dv = of.v, .dlog_decay = ddecay.view, .dbeta = dsteps.view});

  DecayGatesInputs gates = {.x = input.decay,
                            .bias = step_bias_.view,
                            .rates = step_rates_.view,
                            .range = config_.time_steps,
                            .dout = dsteps.view};
  recurrent.decay_gates_gradient(gates, d.decay);
  gates.rates = decay_rates_.view;
  gates.dout = ddecay.view;
  const OwnedTensor from_decay = take(heads);
  recurrent.decay_gates_gradient(gates, from_decay.view);
  backend.add(d.decay, from_decay.view, d.decay);
  backend.gradients().activation_gradient(config_.activation, convolved.view, dmixed.view,
                                          dmixed.view);
  convolution_.gradient(recurrent, dmixed.view, in.sequences, d.channels);
  if (!in.own_gradients.empty()) {
    backend.gradients().bias_gradient(d.decay, *in.own_gradient(kOwnStepBias));
    add_decay_rates_gradient(backend, decay.view, ddecay.view, *in.own_gradient(kOwnDecayRates));
    const OwnedTensor of_skip = take(heads);
    multiply_heads(dread.view, mixed.view.slice(1, 0, config_.inner()), of_skip.view);
    backend.gradients().bias_gradient(of_skip.view, *in.own_gradient(kMambaSkip));
    convolution_.add_own_gradients(backend, in, input.channels, dmixed.view, kMambaConvolution);
  }
  scale_parts(backend, dinput, dinput);
}

std::vector<OwnWeight> Mamba2::own_weights() const {
  std::vector<OwnWeight> weights = {own_step_bias(step_bias_), own_decay_rates(decay_rates_),
                                    own_vector("D", skip_, 1.0f)};
  convolution_.list_own_weights("conv1d", weights);
  if (norm_) weights.push_back(own_norm_weight("norm", *norm_));
  return weights;
}

void Mamba2::set_own_weights(Backend& backend, std::span<const std::vector<float>> values) {
  step_bias_ = write_vector(backend, values[kOwnStepBias]);
  decay_rates_ = decay_rates_of(backend, values[kOwnDecayRates]);
  skip_ = write_vector(backend, values[kMambaSkip]);
  convolution_.set_own_weights(backend, values, kMambaConvolution);
  if (norm_) norm_->set_values(backend, values.back(), {});
}

}  // namespace paceline
