#include "layers/mamba2.h"

#include <vector>

#include "kernels/backend.h"
#include "layers/decay_rates.h"
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

}  // namespace

int64_t Mamba2Config::block_elements() const {
  return sum_shape(*this).block_elements() + channels_shape(*this).block_elements();
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

void Mamba2::forward(Backend& backend, const Tensor& x, const StateSlices& slices,
                     const BlockAdapters& adapters, const Tensor& states, Scratch& scratch,
                     const Tensor& out) const {
  const Scratch::Frame frame(scratch);
  RecurrentOps& ops = *backend.recurrent();
  const int64_t rows = x.size(0), inner = config_.inner(), channels = config_.channels();
  const int64_t keys = config_.groups * config_.state_size;
  const int64_t inputs_end = channels_shape(config_).block_elements();  // in a state

  const Tensor input = scratch.take_rows(rows, config_.input_width());
  input_.forward(backend, x, input);
  adapters.add(backend, BlockProduct::qkv, x, input);
  scale_parts(backend, input);
  const Tensor gates = input.slice(1, 0, inner);
  const Tensor decays = input.slice(1, inner + channels, config_.input_width());

  const Tensor mixed = scratch.take_rows(rows, channels);
  convolution_.forward(ops, input.slice(1, inner, inner + channels), slices,
                       states.slice(1, 0, inputs_end), mixed);
  backend.activation(config_.activation, mixed, mixed);
  const Tensor steps = scratch.take_rows(rows, config_.heads);
  ops.decay_gates(decays, step_bias_.view, step_rates_.view, config_.time_steps, steps);
  ops.decay_gates(decays, step_bias_.view, decay_rates_.view, config_.time_steps, decays);

  const Tensor read = scratch.take_rows(rows, inner);
  ops.delta_rule(sum_shape(config_),
                 {.q = heads_at(mixed, inner + keys, config_.groups, config_.state_size),
                  .k = heads_at(mixed, inner, config_.groups, config_.state_size),
                  .v = heads_at(mixed, 0, config_.heads, config_.head_dim),
                  .log_decay = decays,
                  .beta = steps,
                  .skip = &skip_.view},
                 slices, states.slice(1, inputs_end, states.size(1)),
                 heads_at(read, 0, config_.heads, config_.head_dim));
  gate(backend, gates, read);
  output_.forward(backend, read, out);
  adapters.add(backend, BlockProduct::output, read, out);
}

void Mamba2::scale_parts(Backend& backend, const Tensor& input) const {
  const int64_t inner = config_.inner(), keys = config_.groups * config_.state_size;
  const std::array<int64_t, 5> widths = {inner, inner, keys, keys, config_.heads};
  int64_t first = 0;
  for (size_t i = 0; i < widths.size(); ++i) {
    const Tensor part = input.slice(1, first, first + widths[i]);
    const float scale = config_.input_scales[i];
    if (scale != 1.0f) backend.scale(part, std::array{scale}, part);
    first += widths[i];
  }
}

void Mamba2::gate(Backend& backend, const Tensor& gates, const Tensor& read) const {
  if (config_.norm == GatedNorm::norm_first) normalise(backend, read);
  backend.gated_activation(Activation::silu, gates, read, read);
  if (config_.norm == GatedNorm::gate_first) normalise(backend, read);
}

void Mamba2::normalise(Backend& backend, const Tensor& read) const {
  const int64_t size = config_.inner() / config_.groups;
  for (int64_t begin = 0; begin < config_.inner(); begin += size) {
    const Tensor part = read.slice(1, begin, begin + size);
    backend.rms_norm(part, norm_->weight().slice(0, begin, begin + size), norm_->eps(), part);
  }
}

size_t mamba2_scratch_bytes(const Mamba2Config& config, int64_t max_rows) {
  const auto rows_of = [max_rows](int64_t width) {
    return scratch_bytes(DType::f32, max_rows * row_stride(width));
  };
  return rows_of(config.input_width()) + rows_of(config.channels()) + rows_of(config.heads) +
         rows_of(config.inner());
}

}  // namespace paceline
