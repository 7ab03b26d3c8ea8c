#include "layers/gated_mlp.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "kernels/backend.h"
#include "kernels/gradients.h"
#include "layers/load_context.h"

namespace paceline {
namespace {

Linear::Bias bias_if(bool exists) { return exists ? Linear::Bias::stored : Linear::Bias::none; }

Linear load_gate_up(const LoadContext& context, const std::string& name, const MlpConfig& config) {
  const int64_t width = config.intermediate_size;
  std::vector<Projection> parts;
  if (config.fused_gate_up) {
    parts = {{name + "." + config.names.gate_up, 2 * width}};
    if (config.up_first) parts.front().order = {{width, width}, {0, width}};
  } else {
    if (config.gated) parts.push_back({name + "." + config.names.gate, width});
    parts.push_back({name + "." + config.names.up, width});
  }
  return Linear(context, parts, config.hidden_size, bias_if(config.bias));
}

Linear load_down(const LoadContext& context, const std::string& name, const MlpConfig& config) {
  const std::array<Projection, 1> parts = {{{name + "." + config.names.down, config.hidden_size}}};
  return Linear(context, parts, config.intermediate_size, bias_if(config.bias || config.down_bias));
}

// log(1 + exp(x)).
float softplus(float x) { return std::max(x, 0.0f) + std::log1p(std::exp(-std::abs(x))); }

// The files hold what softplus makes positive. `linear` and the limit are numbers without a
// dimension there.
XieluWeights load_xielu(const LoadContext& context, const std::string& name) {
  const auto trained = [&](const char* part) {
    return softplus(load_numbers(context, name + part, 1).front());
  };
  const float linear = load_number(context, name + ".beta");
  return {.positive = trained(".alpha_p"),
          .negative = linear + trained(".alpha_n"),
          .linear = linear,
          .limit = load_number(context, name + ".eps")};
}

}  // namespace

GatedMlp::GatedMlp(const LoadContext& context, const std::string& name, const MlpConfig& config)
    : config_(config),
      gate_up_(load_gate_up(context, name, config)),
      down_(load_down(context, name, config)) {
  if (config.xielu) xielu_ = load_xielu(context, name + ".act_fn");
}

void GatedMlp::forward(Backend& backend, const Tensor& x, const BlockAdapters& adapters,
                       Scratch& scratch, const Tensor& out) const {
  if (config_.has_steps() || adapters.change(BlockProduct::gate_up) ||
      adapters.change(BlockProduct::down)) {
    return forward_by_steps(backend, x, adapters, scratch, out);
  }
  backend.gated_mlp(weights(), x, out);
}

GatedMlpWeights GatedMlp::weights() const {
  const int64_t width = config_.intermediate_size;
  return {.activation = config_.activation,
          .gate = gate_up_.columns(0, width),
          .up = gate_up_.columns(config_.self_gated ? 0 : width, width),
          .down = down_.columns(0, config_.hidden_size)};
}

void GatedMlp::activate(Backend& backend, const Tensor& gate_up, const Tensor& out) const {
  const int64_t width = config_.intermediate_size;
  const Tensor gate = gate_up.slice(1, 0, width);
  if (!config_.gated) {
    if (xielu_) return backend.xielu(gate, *xielu_, out);
    if (config_.self_gated) return backend.gated_activation(config_.activation, gate, gate, out);
    return backend.activation(config_.activation, gate, out);
  }
  if (config_.gate_deviations) backend.gaussian_top_k(gate, *config_.gate_deviations, gate);
  const bool is_scaled = config_.gate_scale != 1.0f;
  if (is_scaled) backend.scale(gate, std::array{config_.gate_scale}, out);
  backend.gated_activation(config_.activation, is_scaled ? out : gate,
                           gate_up.slice(1, width, 2 * width), out);
}

void GatedMlp::activation_gradient(Backend& backend, const Tensor& gate_up, const Tensor& dout,
                                   const Tensor& dgate_up) const {
  GradientOps& gradients = backend.gradients();
  const int64_t width = config_.intermediate_size;
  const Activation kind = config_.activation;
  if (config_.self_gated) {  // the sum of both parts
    const OwnedTensor of_gate = allocate_rows(backend.memory(), gate_up.size(0), width);
    const OwnedTensor of_up = allocate_rows(backend.memory(), gate_up.size(0), width);
    gradients.gated_activation_gradient(kind, {.gate = gate_up, .up = gate_up, .dout = dout},
                                        of_gate.view, of_up.view);
    return backend.add(of_gate.view, of_up.view, dgate_up);
  }
  if (!config_.gated) return gradients.activation_gradient(kind, gate_up, dout, dgate_up);
  const Tensor up = gate_up.slice(1, width, 2 * width), dup = dgate_up.slice(1, width, 2 * width);
  const Tensor dgate = dgate_up.slice(1, 0, width);
  const std::array scale = {config_.gate_scale};
  Tensor gate = gate_up.slice(1, 0, width);
  if (config_.gate_scale != 1.0f) {
    backend.scale(gate, scale, dgate);
    gate = dgate;
  }
  gradients.gated_activation_gradient(kind, {.gate = gate, .up = up, .dout = dout}, dgate, dup);
  if (config_.gate_scale != 1.0f) backend.scale(dgate, scale, dgate);
}

// Rows without an adapter have the bits of Backend::gated_mlp.
void GatedMlp::forward_by_steps(Backend& backend, const Tensor& x, const BlockAdapters& adapters,
                                Scratch& scratch, const Tensor& out) const {
  const Scratch::Frame frame(scratch);
  const int64_t width = config_.intermediate_size;
  const Tensor gate_up = scratch.take_rows(x.size(0), up_width());
  gate_up_.forward(backend, x, gate_up);
  adapters.add(backend, BlockProduct::gate_up, x, gate_up);
  const Tensor gate = gate_up.slice(1, 0, width);
  activate(backend, gate_up, gate);
  down_.forward(backend, gate, out);
  adapters.add(backend, BlockProduct::down, gate, out);
}

}  // namespace paceline
