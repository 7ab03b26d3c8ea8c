#include "layers/gated_mlp.h"

#include <array>
#include <vector>

#include "kernels/backend.h"

namespace paceline {
namespace {

Linear::Bias bias_of(const MlpConfig& config) {
  return config.bias ? Linear::Bias::stored : Linear::Bias::none;
}

Linear load_gate_up(const LoadContext& context, const std::string& name, const MlpConfig& config) {
  const int64_t width = config.intermediate_size;
  std::vector<Projection> parts;
  if (config.fused_gate_up) {
    parts = {{name + "." + config.names.gate_up, 2 * width}};
  } else {
    if (config.gated) parts.push_back({name + "." + config.names.gate, width});
    parts.push_back({name + "." + config.names.up, width});
  }
  return Linear(context, parts, config.hidden_size, bias_of(config));
}

Linear load_down(const LoadContext& context, const std::string& name, const MlpConfig& config) {
  const std::array<Projection, 1> parts = {{{name + "." + config.names.down, config.hidden_size}}};
  return Linear(context, parts, config.intermediate_size, bias_of(config));
}

}  // namespace

GatedMlp::GatedMlp(const LoadContext& context, const std::string& name, const MlpConfig& config)
    : config_(config),
      gate_up_(load_gate_up(context, name, config)),
      down_(load_down(context, name, config)) {}

void GatedMlp::forward(Backend& backend, const Tensor& x, const BlockAdapters& adapters,
                       Scratch& scratch, const Tensor& out) const {
  if (!config_.gated || config_.gate_scale != 1.0f || adapters.change(BlockProduct::gate_up) ||
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
  if (config_.gated) {
    backend.gated_activation(config_.activation, gate, gate_up.slice(1, width, 2 * width), out);
  } else if (config_.self_gated) {
    backend.gated_activation(config_.activation, gate, gate, out);
  } else {
    backend.activation(config_.activation, gate, out);
  }
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
  if (config_.gate_scale != 1.0f) backend.scale(gate, std::array{config_.gate_scale}, gate);
  activate(backend, gate_up, gate);
  down_.forward(backend, gate, out);
  adapters.add(backend, BlockProduct::down, gate, out);
}

}  // namespace paceline
