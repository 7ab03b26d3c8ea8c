#include "layers/gated_convolution.h"

#include "kernels/backend.h"
#include "layers/load_context.h"

namespace paceline {
namespace {

Linear load_projection(const LoadContext& context, const std::string& name, int64_t out_features,
                       int64_t in_features, const GatedConvolutionConfig& config) {
  const std::array<Projection, 1> parts = {{{name, out_features}}};
  return Linear(context, parts, in_features,
                config.bias ? Linear::Bias::stored : Linear::Bias::none);
}

ConvolutionShape shape_of(const GatedConvolutionConfig& config, int64_t hidden_size) {
  return {.channels = hidden_size, .taps = config.taps};
}

}  // namespace

GatedConvolution::GatedConvolution(const LoadContext& context, const std::string& name,
                                   int64_t hidden_size, const GatedConvolutionConfig& config)
    : input_(load_projection(context, name + ".in_proj", 3 * hidden_size, hidden_size, config)),
      convolution_(context, name + ".conv", shape_of(config, hidden_size), config.bias),
      output_(load_projection(context, name + ".out_proj", hidden_size, hidden_size, config)) {}

GatedConvolution::InputParts GatedConvolution::parts_of(const Tensor& input) {
  const int64_t hidden = input.size(1) / 3;
  return {.before = input.slice(1, 0, hidden),
          .after = input.slice(1, hidden, 2 * hidden),
          .values = input.slice(1, 2 * hidden, 3 * hidden)};
}

void GatedConvolution::forward(Backend& backend, const Tensor& x, const StateSlices& slices,
                               const BlockAdapters& adapters, const StateStore& states,
                               Scratch& scratch, const Tensor& out) const {
  const Scratch::Frame frame(scratch);
  RecurrentOps& ops = *backend.recurrent();
  const Tensor input = take_convolution_input(scratch, x.size(1), x.size(0));
  input_.forward(backend, x, input);
  adapters.add(backend, BlockProduct::qkv, x, input);
  const auto [before, after, values] = parts_of(input);
  ops.multiply(before, values, values);
  const Tensor& mixed = before;  // which isn't needed any more
  convolution_.forward(ops, values, slices, states.convolution, mixed);
  ops.multiply(after, mixed, mixed);
  output_.forward(backend, mixed, out);
  adapters.add(backend, BlockProduct::output, mixed, out);
}

void GatedConvolution::mix(Backend& backend, const Tensor& input, const StateSlices& slices,
                           const StateStore& states, const Tensor& kept, const Tensor& out) const {
  RecurrentOps& ops = *backend.recurrent();
  const auto [before, after, values] = parts_of(input);
  const OwnedTensor gated = allocate_rows(backend.memory(), input.size(0), mixed_width());
  ops.multiply(before, values, gated.view);
  convolution_.forward(ops, gated.view, slices, states.convolution, kept);
  ops.multiply(after, kept, out);
}

void GatedConvolution::mix_gradient(Backend& backend, const MixGradientInputs& in,
                                    const Tensor& dinput) const {
  RecurrentOps& ops = *backend.recurrent();
  const auto [before, after, values] = parts_of(in.input);
  const InputParts d = parts_of(dinput);
  ops.multiply(in.dout, in.kept, d.after);
  const OwnedTensor dkept = allocate_rows(backend.memory(), dinput.size(0), mixed_width());
  const OwnedTensor dgated = allocate_rows(backend.memory(), dinput.size(0), mixed_width());
  ops.multiply(in.dout, after, dkept.view);
  convolution_.gradient(*backend.recurrent_gradients(), dkept.view, in.sequences, dgated.view);
  add_own_gradients(backend, in, dkept.view);
  ops.multiply(dgated.view, values, d.before);
  ops.multiply(dgated.view, before, d.values);
}

void GatedConvolution::add_own_gradients(Backend& backend, const MixGradientInputs& in,
                                         const Tensor& dkept) const {
  if (in.own_gradients.empty()) return;
  const auto [before, after, values] = parts_of(in.input);
  const OwnedTensor gated = allocate_rows(backend.memory(), dkept.size(0), mixed_width());
  backend.recurrent()->multiply(before, values, gated.view);
  convolution_.add_own_gradients(backend, in, gated.view, dkept, 0);
}

std::vector<OwnWeight> GatedConvolution::own_weights() const {
  std::vector<OwnWeight> weights;
  convolution_.list_own_weights("conv", weights);
  return weights;
}

void GatedConvolution::set_own_weights(Backend& backend,
                                       std::span<const std::vector<float>> values) {
  convolution_.set_own_weights(backend, values, 0);
}

LayerStateElements convolution_state_elements(const GatedConvolutionConfig& config,
                                              int64_t hidden_size) {
  return {.convolution = elements_of(shape_of(config, hidden_size)), .matrices = {}};
}

Tensor take_convolution_input(Scratch& scratch, int64_t hidden_size, int64_t rows) {
  return scratch.take_rows(rows, 3 * hidden_size);
}

}  // namespace paceline
