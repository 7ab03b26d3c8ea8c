#include "layers/gated_delta_net.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "kernels/backend.h"
#include "kernels/recurrent_gradients.h"
#include "layers/decay_rates.h"
#include "layers/load_context.h"

namespace paceline {
namespace {

// Queries and keys are divided by sqrt(sum of squares + this).
constexpr float kNormEps = 1e-6f;

// Indices of own weights, after those of decay.
constexpr size_t kDeltaNorm = 2, kDeltaConvolution = 3;

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

std::optional<Linear> load_of_latent(const LoadContext& context, const DeltaNetConfig& config,
                                     const std::string& name, size_t index) {
  const std::vector<Projection> all = latent_gate_projections(config, name);
  if (all.empty()) return std::nullopt;
  return Linear(context, std::span(all).subspan(index, 1), config.gate_rank, Linear::Bias::none);
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
          .value_dim = config.value_dim,
          .channel_decay = config.channel_decay};
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
    case DeltaProjections::as_in_gguf:
      return {
          {name + ".in_proj_qkv", config.channels()},
          {name + ".in_proj_z", config.value_width()},
          {name + ".in_proj_ba", 2 * heads,
           order_by_part(config.key_heads, {heads / config.key_heads, heads / config.key_heads})}};
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
    case DeltaProjections::low_rank:
      return {{name + ".q_proj", config.key_width()},
              {name + ".k_proj", config.key_width()},
              {name + ".v_proj", config.value_width()},
              {name + ".g_a_proj", config.gate_rank},
              {name + ".b_proj", heads},
              {name + ".f_a_proj", config.gate_rank}};
  }
  return {{name + ".in_proj_qkv", config.channels()},
          {name + ".in_proj_z", config.value_width()},
          {name + ".in_proj_b", heads},
          {name + ".in_proj_a", heads}};
}

std::vector<Projection> latent_gate_projections(const DeltaNetConfig& config,
                                                const std::string& name) {
  if (config.gate_rank == 0) return {};
  return {{name + ".g_b_proj", config.value_width()}, {name + ".f_b_proj", config.decay_width()}};
}

LayerStateElements DeltaNetConfig::state_elements() const {
  return {.convolution = elements_of(convolution_shape(*this)),
          .matrices = elements_of(delta_shape(*this))};
}

GatedDeltaNet::GatedDeltaNet(const LoadContext& context, const std::string& name,
                             int64_t hidden_size, float norm_eps, const DeltaNetConfig& config)
    : config_(config),
      input_(context, delta_projections(config, name), hidden_size, Linear::Bias::none),
      gates_(load_of_latent(context, config, name, 0)),
      decays_(load_of_latent(context, config, name, 1)),
      convolution_(context, convolution_parts(context, config, name), convolution_shape(config)),
      decay_bias_(load_vector(context, name + ".dt_bias", config.decay_width())),
      decay_rates_(load_decay_rates(context, name, config.value_heads,
                                    config.decay_width() / config.value_heads)),
      query_scale_(unit_scale(context, config.key_dim,
                              1.0 / std::sqrt(static_cast<double>(config.key_dim)))),
      key_scale_(unit_scale(context, config.key_dim, 1.0)),
      norm_(context, name + "." + config.norm, config.value_dim,
            {.eps = config.norm_eps.value_or(norm_eps)}),
      output_(load_delta_output(context, name, hidden_size, config)) {}

DeltaNetParts GatedDeltaNet::parts_of(const Tensor& input) const {
  const int64_t gates = config_.channels(), beta = gates + config_.gates_in_input();
  const int64_t decay = beta + config_.value_heads;
  return {.channels = input.slice(1, 0, gates),
          .gates = input.slice(1, gates, beta),
          .beta = input.slice(1, beta, decay),
          .decay = input.slice(1, decay, config_.input_width())};
}

DeltaNetParts GatedDeltaNet::make_parts(Backend& backend, const DeltaNetScratch& taken,
                                        const BlockAdapters& adapters) const {
  DeltaNetParts parts = parts_of(taken.input);
  if (!gates_) return parts;
  gates_->forward(backend, parts.gates, taken.gates);
  adapters.add(backend, BlockProduct::output_gates, parts.gates, taken.gates);
  decays_->forward(backend, parts.decay, taken.decay);
  adapters.add(backend, BlockProduct::decays, parts.decay, taken.decay);
  parts.gates = taken.gates;
  parts.decay = taken.decay;
  return parts;
}

GatedDeltaNet::MixedHeads GatedDeltaNet::heads_of(const Tensor& mixed) const {
  const int64_t heads = config_.key_heads, keys = heads * config_.key_dim;
  return {.q = heads_at(mixed, 0, heads, config_.key_dim),
          .k = heads_at(mixed, keys, heads, config_.key_dim),
          .v = heads_at(mixed, 2 * keys, config_.value_heads, config_.value_dim)};
}

Tensor GatedDeltaNet::value_heads_of(const Tensor& values) const {
  return heads_at(values, 0, config_.value_heads, config_.value_dim);
}

void GatedDeltaNet::prepare_gates(Backend& backend, const DeltaNetParts& input,
                                  const Buffers& buffers) const {
  backend.activation(Activation::sigmoid, input.beta, buffers.beta);
  if (config_.beta_scale != 1.0f) {
    backend.scale(buffers.beta, std::array{config_.beta_scale}, buffers.beta);
  }
  backend.recurrent()->decay_gates(input.decay, decay_bias_.view, decay_rates_.view, {},
                                   buffers.decay);
}

void GatedDeltaNet::normalise_keys(Backend& backend, const MixedHeads& from,
                                   const MixedHeads& to) const {
  const float eps = kNormEps / static_cast<float>(config_.key_dim);
  backend.rms_norm(from.q, query_scale_.view, eps, to.q);
  backend.rms_norm(from.k, key_scale_.view, eps, to.k);
}

void GatedDeltaNet::run(Backend& backend, const DeltaNetParts& parts, const StateSlices& slices,
                        const StateStore& states, const Buffers& buffers, const Tensor& out) const {
  convolution_.forward(*backend.recurrent(), parts.channels, slices, states.convolution,
                       buffers.mixed);
  prepare_gates(backend, parts, buffers);
  backend.activation(config_.activation, buffers.mixed, buffers.mixed);
  const MixedHeads heads = heads_of(buffers.mixed);
  normalise_keys(backend, heads, heads);
  backend.recurrent()->delta_rule(
      delta_shape(config_),
      {.q = heads.q, .k = heads.k, .v = heads.v, .log_decay = buffers.decay, .beta = buffers.beta},
      slices, states.matrices, value_heads_of(buffers.read));
  norm_.forward(backend, value_heads_of(buffers.read), value_heads_of(out));
  backend.gated_activation(config_.gate, parts.gates, out, out);
}

DeltaNetScratch::DeltaNetScratch(Scratch& scratch, const DeltaNetConfig& config, int64_t rows)
    : input(scratch.take_rows(rows, config.input_width())),
      gates(config.gate_rank > 0 ? scratch.take_rows(rows, config.value_width()) : Tensor()),
      decay(config.gate_rank > 0 ? scratch.take_rows(rows, config.decay_width()) : Tensor()),
      mixed(scratch.take_rows(rows, config.channels())),
      read(scratch.take_rows(rows, config.value_width())) {}

void GatedDeltaNet::forward(Backend& backend, const Tensor& x, const StateSlices& slices,
                            const BlockAdapters& adapters, const StateStore& states,
                            Scratch& scratch, const Tensor& out) const {
  const Scratch::Frame frame(scratch);
  const DeltaNetScratch taken(scratch, config_, x.size(0));
  input_.forward(backend, x, taken.input);
  adapters.add(backend, BlockProduct::qkv, x, taken.input);
  const DeltaNetParts parts = make_parts(backend, taken, adapters);
  const Tensor& read = taken.read;
  run(backend, parts, slices, states,
      {.mixed = taken.mixed, .beta = parts.beta, .decay = parts.decay, .read = read}, read);
  output_.forward(backend, read, out);
  adapters.add(backend, BlockProduct::output, read, out);
}

void GatedDeltaNet::list_weights(std::vector<const PackedMatrix*>& weights) const {
  const auto list = [&](const Linear& product) {
    for (const PackedMatrix& weight : product.weights()) weights.push_back(&weight);
  };
  list(input_);
  if (gates_) list(*gates_);
  if (decays_) list(*decays_);
  list(output_);
}

void GatedDeltaNet::mix(Backend& backend, const Tensor& input, const StateSlices& slices,
                        const StateStore& states, const Tensor& kept, const Tensor& out) const {
  PL_CHECK(!gates_ && !config_.channel_decay, "delta nets with latent gates aren't trained");
  const int64_t rows = input.size(0), heads = config_.value_heads;
  const OwnedTensor mixed = allocate_rows(backend.memory(), rows, config_.channels());
  const OwnedTensor beta = allocate_rows(backend.memory(), rows, heads);
  const OwnedTensor decay = allocate_rows(backend.memory(), rows, heads);
  run(backend, parts_of(input), slices, states,
      {.mixed = mixed.view, .beta = beta.view, .decay = decay.view, .read = kept}, out);
}

// Back through the gates of the output and its norm.
void GatedDeltaNet::output_gradient(Backend& backend, const MixGradientInputs& in,
                                    const Tensor& dread, const Tensor& dgates) const {
  const Tensor* const weight = in.own_gradient(kDeltaNorm);
  const OwnedTensor normed = allocate_rows(backend.memory(), dread.size(0), config_.value_width());
  norm_.forward(backend, value_heads_of(in.kept), value_heads_of(normed.view));
  backend.gradients().gated_activation_gradient(
      config_.gate, {.gate = parts_of(in.input).gates, .up = normed.view, .dout = in.dout}, dgates,
      dread);
  norm_.gradient(backend.gradients(), value_heads_of(in.kept), value_heads_of(dread),
                 value_heads_of(dread), {.weight = weight ? std::optional(*weight) : std::nullopt});
}

void GatedDeltaNet::mix_gradient(Backend& backend, const MixGradientInputs& in,
                                 const Tensor& dinput) const {
  GradientOps& gradients = backend.gradients();
  RecurrentGradientOps& recurrent = *backend.recurrent_gradients();
  const int64_t rows = in.input.size(0), channels = config_.channels();
  const int64_t heads = config_.value_heads;
  const auto take = [&](int64_t width) { return allocate_rows(backend.memory(), rows, width); };
  const DeltaNetParts input = parts_of(in.input), d = parts_of(dinput);
  const OwnedTensor dread = take(config_.value_width());
  output_gradient(backend, in, dread.view, d.gates);

  const int64_t keys = config_.key_heads * config_.key_dim;
  const OwnedTensor convolved = take(channels), mixed = take(channels), normed = take(2 * keys);
  const OwnedTensor beta = take(heads), decay = take(heads);
  convolution_.forward(*backend.recurrent(), input.channels, in.groups, in.states.convolution,
                       convolved.view);
  prepare_gates(backend, input, {.beta = beta.view, .decay = decay.view});
  backend.activation(config_.activation, convolved.view, mixed.view);
  const MixedHeads from = heads_of(mixed.view);
  const MixedHeads to = {.q = heads_at(normed.view, 0, config_.key_heads, config_.key_dim),
                         .k = heads_at(normed.view, keys, config_.key_heads, config_.key_dim),
                         .v = from.v};
  normalise_keys(backend, from, to);

  const OwnedTensor dmixed = take(channels), dbeta = take(heads), ddecay = take(heads);
  const MixedHeads of = heads_of(dmixed.view);
  recurrent.delta_rule_gradient(
      delta_shape(config_),
      {.forward = {.q = to.q, .k = to.k, .v = from.v, .log_decay = decay.view, .beta = beta.view},
       .dout = value_heads_of(dread.view)},
      in.sequences,
      {.dq = of.q, .dk = of.k, .dv = of.v, .dlog_decay = ddecay.view, .dbeta = dbeta.view});

  if (config_.beta_scale != 1.0f) {
    backend.scale(dbeta.view, std::array{config_.beta_scale}, dbeta.view);
  }
  gradients.activation_gradient(Activation::sigmoid, input.beta, dbeta.view, d.beta);
  recurrent.decay_gates_gradient(
      {.x = input.decay, .bias = decay_bias_.view, .rates = decay_rates_.view, .dout = ddecay.view},
      d.decay);
  if (!in.own_gradients.empty()) {
    gradients.bias_gradient(d.decay, *in.own_gradient(kOwnStepBias));
    add_decay_rates_gradient(backend, decay.view, ddecay.view, *in.own_gradient(kOwnDecayRates));
  }
  const float eps = kNormEps / static_cast<float>(config_.key_dim);
  gradients.rms_norm_gradient({from.q, query_scale_.view, of.q}, eps, of.q, nullptr);
  gradients.rms_norm_gradient({from.k, key_scale_.view, of.k}, eps, of.k, nullptr);
  gradients.activation_gradient(config_.activation, convolved.view, dmixed.view, dmixed.view);
  convolution_.gradient(recurrent, dmixed.view, in.sequences, d.channels);
  convolution_.add_own_gradients(backend, in, input.channels, dmixed.view, kDeltaConvolution);
}

std::vector<OwnWeight> GatedDeltaNet::own_weights() const {
  std::vector<OwnWeight> weights = {own_step_bias(decay_bias_), own_decay_rates(decay_rates_),
                                    own_norm_weight(config_.norm, norm_)};
  convolution_.list_own_weights("conv1d", weights);
  return weights;
}

void GatedDeltaNet::set_own_weights(Backend& backend, std::span<const std::vector<float>> values) {
  decay_bias_ = write_vector(backend, values[kOwnStepBias]);
  decay_rates_ = decay_rates_of(backend, values[kOwnDecayRates]);
  norm_.set_values(backend, values[kDeltaNorm], {});
  convolution_.set_own_weights(backend, values, kDeltaConvolution);
}

}  // namespace paceline
