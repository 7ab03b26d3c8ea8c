#include "layers/gated_delta_net.h"

#include <cmath>
#include <vector>

#include "kernels/backend.h"
#include "layers/decay_rates.h"
#include "layers/load_context.h"

namespace paceline {
namespace {

// Queries and keys are divided by sqrt(sum of squares + this).
constexpr float kNormEps = 1e-6f;

Linear load_input(const LoadContext& context, const std::string& name, int64_t hidden_size,
                  const DeltaNetConfig& config) {
  const std::array<Projection, 4> parts = {{
      {name + ".in_proj_qkv", config.channels()},
      {name + ".in_proj_z", config.value_width()},
      {name + ".in_proj_b", config.value_heads},
      {name + ".in_proj_a", config.value_heads},
  }};
  return Linear(context, parts, hidden_size, Linear::Bias::none);
}

Linear load_delta_output(const LoadContext& context, const std::string& name, int64_t hidden_size,
                         const DeltaNetConfig& config) {
  const std::array<Projection, 1> parts = {{{name + ".out_proj", hidden_size}}};
  return Linear(context, parts, config.value_width(), Linear::Bias::none);
}

// A norm of unit length is one of unit root mean square times 1 / sqrt(size).
OwnedTensor unit_scale(const LoadContext& context, int64_t size, double factor) {
  const auto scale = static_cast<float>(factor / std::sqrt(static_cast<double>(size)));
  return write_vector(context.backend, std::vector<float>(static_cast<size_t>(size), scale));
}

DeltaShape delta_shape(const DeltaNetConfig& config) {
  return {.key_heads = config.key_heads,
          .value_heads = config.value_heads,
          .key_dim = config.key_dim,
          .value_dim = config.value_dim};
}

ConvolutionShape convolution_shape(const DeltaNetConfig& config) {
  return {.channels = config.channels(), .taps = config.taps};
}

}  // namespace

int64_t DeltaNetConfig::block_elements() const {
  return delta_shape(*this).block_elements() + convolution_shape(*this).block_elements();
}

GatedDeltaNet::GatedDeltaNet(const LoadContext& context, const std::string& name,
                             int64_t hidden_size, float norm_eps, const DeltaNetConfig& config)
    : config_(config),
      input_(load_input(context, name, hidden_size, config)),
      convolution_(context, name + ".conv1d", convolution_shape(config), false),
      decay_bias_(load_vector(context, name + ".dt_bias", config.value_heads)),
      decay_rates_(load_decay_rates(context, name + ".A_log", config.value_heads)),
      query_scale_(unit_scale(context, config.key_dim,
                              1.0 / std::sqrt(static_cast<double>(config.key_dim)))),
      key_scale_(unit_scale(context, config.key_dim, 1.0)),
      norm_(context, name + ".norm", config.value_dim, {.eps = norm_eps}),
      output_(load_delta_output(context, name, hidden_size, config)) {}

void GatedDeltaNet::forward(Backend& backend, const Tensor& x, const StateSlices& slices,
                            const BlockAdapters& adapters, const Tensor& states, Scratch& scratch,
                            const Tensor& out) const {
  const Scratch::Frame frame(scratch);
  RecurrentOps& ops = *backend.recurrent();
  const int64_t rows = x.size(0), channels = config_.channels(), width = config_.value_width();
  const int64_t heads = config_.value_heads, keys = config_.key_heads * config_.key_dim;
  const DeltaShape delta = delta_shape(config_);
  const int64_t inputs_end = convolution_shape(config_).block_elements();  // in a state

  const Tensor input = scratch.take_rows(rows, config_.input_width());
  input_.forward(backend, x, input);
  adapters.add(backend, BlockProduct::qkv, x, input);
  const Tensor gates = input.slice(1, channels, channels + width);
  const Tensor beta = input.slice(1, channels + width, channels + width + heads);
  const Tensor decay = input.slice(1, channels + width + heads, config_.input_width());

  const Tensor mixed = scratch.take_rows(rows, channels);
  convolution_.forward(ops, input.slice(1, 0, channels), slices, states.slice(1, 0, inputs_end),
                       mixed);
  backend.activation(Activation::silu, mixed, mixed);
  const Tensor q = heads_at(mixed, 0, config_.key_heads, config_.key_dim);
  const Tensor k = heads_at(mixed, keys, config_.key_heads, config_.key_dim);
  const float eps = kNormEps / static_cast<float>(config_.key_dim);
  backend.rms_norm(q, query_scale_.view, eps, q);
  backend.rms_norm(k, key_scale_.view, eps, k);
  backend.activation(Activation::sigmoid, beta, beta);
  ops.decay_gates(decay, decay_bias_.view, decay_rates_.view, {}, decay);

  const Tensor read = scratch.take_rows(rows, width);
  const Tensor read_heads = heads_at(read, 0, heads, config_.value_dim);
  ops.delta_rule(delta,
                 {.q = q,
                  .k = k,
                  .v = heads_at(mixed, 2 * keys, heads, config_.value_dim),
                  .log_decay = decay,
                  .beta = beta},
                 slices, states.slice(1, inputs_end, states.size(1)), read_heads);
  norm_.forward(backend, read_heads, read_heads);
  backend.gated_activation(Activation::silu, gates, read, read);
  output_.forward(backend, read, out);
  adapters.add(backend, BlockProduct::output, read, out);
}

size_t delta_net_scratch_bytes(const DeltaNetConfig& config, int64_t max_rows) {
  const auto rows_of = [max_rows](int64_t width) {
    return scratch_bytes(DType::f32, max_rows * row_stride(width));
  };
  return rows_of(config.input_width()) + rows_of(config.channels()) + rows_of(config.value_width());
}

}  // namespace paceline
