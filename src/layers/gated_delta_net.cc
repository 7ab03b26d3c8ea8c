#include "layers/gated_delta_net.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/backend.h"
#include "layers/decay_rates.h"
#include "layers/load_context.h"

namespace paceline {
namespace {

// Queries and keys are divided by sqrt(sum of squares + this).
constexpr float kNormEps = 1e-6f;

// Orders rows that are stored by key head, those of each head in parts of these sizes, by part.
std::vector<StoredRows> order_by_part(int64_t key_heads, const std::vector<int64_t>& sizes) {
  const int64_t head_size = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  std::vector<StoredRows> order;
  int64_t first = 0;  // of a head's rows
  for (const int64_t size : sizes) {
    for (int64_t head = 0; head < key_heads; ++head) {
      order.push_back({.first = head * head_size + first, .count = size});
    }
    first += size;
  }
  return order;
}

// The parts are read one behind the other wherever they are cut: transformers writes three parts of
// one size.
std::vector<ConvolutionPart> convolution_parts(const LoadContext& context,
                                               const DeltaNetConfig& config,
                                               const std::string& name) {
  if (!config.has_split_convolution) return {{name + ".conv1d", config.channels()}};
  const auto part = [&](const std::string& of, int64_t channels, int64_t most) {
    const auto found = context.weights.shape_of(name + of + ".weight");
    const bool is_cut_elsewhere = found && found->rank() == 3 && (*found)[0] < most;
    return ConvolutionPart{name + of, is_cut_elsewhere ? (*found)[0] : channels};
  };
  const ConvolutionPart q = part(".q_conv1d", config.key_width(), config.channels());
  const int64_t rest = config.channels() - q.channels;
  const ConvolutionPart k = part(".k_conv1d", std::min(config.key_width(), rest), rest);
  return {q, k, {name + ".v_conv1d", rest - k.channels}};
}

Linear load_delta_output(const LoadContext& context, const std::string& name, int64_t hidden_size,
                         const DeltaNetConfig& config) {
  const std::array<Projection, 1> parts = {{{name + "." + config.output, hidden_size}}};
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

std::vector<Projection> delta_projections(const DeltaNetConfig& config, const std::string& name) {
  const int64_t heads = config.value_heads;
  switch (config.projections) {
    case DeltaProjections::by_kind:
      break;
    case DeltaProjections::by_key_head: {
      const int64_t group = heads / config.key_heads, values = group * config.value_dim;
      return {{name + ".in_proj_qkvz", config.channels() + config.value_width(),
               order_by_part(config.key_heads, {config.key_dim, config.key_dim, values, values})},
              {name + ".in_proj_ba", 2 * heads, order_by_part(config.key_heads, {group, group})}};
    }
    case DeltaProjections::separate:
      return {{name + ".q_proj", config.key_width()},
              {name + ".k_proj", config.key_width()},
              {name + ".v_proj", config.value_width()},
              {name + ".g_proj", config.value_width()},
              {name + ".b_proj", heads},
              {name + ".a_proj", heads}};
  }
  return {{name + ".in_proj_qkv", config.channels()},
          {name + ".in_proj_z", config.value_width()},
          {name + ".in_proj_b", heads},
          {name + ".in_proj_a", heads}};
}

int64_t DeltaNetConfig::block_elements() const {
  return delta_shape(*this).block_elements() + convolution_shape(*this).block_elements();
}

GatedDeltaNet::GatedDeltaNet(const LoadContext& context, const std::string& name,
                             int64_t hidden_size, float norm_eps, const DeltaNetConfig& config)
    : config_(config),
      input_(context, delta_projections(config, name), hidden_size, Linear::Bias::none),
      convolution_(context, convolution_parts(context, config, name), convolution_shape(config)),
      decay_bias_(load_vector(context, name + ".dt_bias", config.value_heads)),
      decay_rates_(load_decay_rates(context, name, config.value_heads)),
      query_scale_(unit_scale(context, config.key_dim,
                              1.0 / std::sqrt(static_cast<double>(config.key_dim)))),
      key_scale_(unit_scale(context, config.key_dim, 1.0)),
      norm_(context, name + "." + config.norm, config.value_dim,
            {.eps = config.norm_eps.value_or(norm_eps)}),
      output_(load_delta_output(context, name, hidden_size, config)) {}

void GatedDeltaNet::forward(Backend& backend, const Tensor& x, const StateSlices& slices,
                            const BlockAdapters& adapters, const Tensor& states, Scratch& scratch,
                            const Tensor& out) const {
  const Scratch::Frame frame(scratch);
  RecurrentOps& ops = *backend.recurrent();
  const int64_t rows = x.size(0), channels = config_.channels(), width = config_.value_width();
  const int64_t heads = config_.value_heads, keys = config_.key_width();
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
  backend.activation(config_.activation, mixed, mixed);
  const Tensor q = heads_at(mixed, 0, config_.key_heads, config_.key_dim);
  const Tensor k = heads_at(mixed, keys, config_.key_heads, config_.key_dim);
  const float eps = kNormEps / static_cast<float>(config_.key_dim);
  backend.rms_norm(q, query_scale_.view, eps, q);
  backend.rms_norm(k, key_scale_.view, eps, k);
  backend.activation(Activation::sigmoid, beta, beta);
  if (config_.beta_scale != 1.0f) backend.scale(beta, std::array{config_.beta_scale}, beta);
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
