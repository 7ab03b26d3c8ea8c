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

void GatedConvolution::forward(Backend& backend, const Tensor& x, const StateSlices& slices,
                               const BlockAdapters& adapters, const Tensor& states,
                               Scratch& scratch, const Tensor& out) const {
  const Scratch::Frame frame(scratch);
  RecurrentOps& ops = *backend.recurrent();
  const int64_t rows = x.size(0), hidden = x.size(1);
  const Tensor input = scratch.take_rows(rows, 3 * hidden);
  input_.forward(backend, x, input);
  adapters.add(backend, BlockProduct::qkv, x, input);
  const Tensor before = input.slice(1, 0, hidden);
  const Tensor after = input.slice(1, hidden, 2 * hidden);
  const Tensor values = input.slice(1, 2 * hidden, 3 * hidden);
  ops.multiply(before, values, values);
  const Tensor& mixed = before;  // which isn't needed any more
  convolution_.forward(ops, values, slices, states, mixed);
  ops.multiply(after, mixed, mixed);
  output_.forward(backend, mixed, out);
  adapters.add(backend, BlockProduct::output, mixed, out);
}

int64_t convolution_state_elements(const GatedConvolutionConfig& config, int64_t hidden_size) {
  return shape_of(config, hidden_size).block_elements();
}

size_t gated_convolution_scratch_bytes(int64_t hidden_size, int64_t max_rows) {
  return scratch_bytes(DType::f32, max_rows * row_stride(3 * hidden_size));
}

}  // namespace paceline
