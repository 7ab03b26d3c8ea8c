#include "layers/gated_mlp.h"

#include <array>

#include "kernels/backend.h"

namespace paceline {
namespace {

Linear::Bias bias_of(const MlpConfig& config) {
  return config.bias ? Linear::Bias::stored : Linear::Bias::none;
}

Linear load_gate_up(const LoadContext& context, const std::string& name, const MlpConfig& config) {
  const std::array<Projection, 2> parts = {{
      {name + ".gate_proj", config.intermediate_size},
      {name + ".up_proj", config.intermediate_size},
  }};
  return Linear(context, parts, config.hidden_size, bias_of(config));
}

Linear load_down(const LoadContext& context, const std::string& name, const MlpConfig& config) {
  const std::array<Projection, 1> parts = {{{name + ".down_proj", config.hidden_size}}};
  return Linear(context, parts, config.intermediate_size, bias_of(config));
}

}  // namespace

GatedMlp::GatedMlp(const LoadContext& context, const std::string& name, const MlpConfig& config)
    : config_(config),
      gate_up_(load_gate_up(context, name, config)),
      down_(load_down(context, name, config)) {}

void GatedMlp::forward(Backend& backend, const Tensor& x, const BlockAdapters& adapters,
                       Scratch& scratch, const Tensor& out) const {
  if (adapters.change(BlockProduct::gate_up) || adapters.change(BlockProduct::down)) {
    return forward_by_steps(backend, x, adapters, scratch, out);
  }
  const int64_t width = config_.intermediate_size;
  backend.gated_mlp({.activation = config_.activation,
                     .gate = gate_up_.columns(0, width),
                     .up = gate_up_.columns(width, width),
                     .down = down_.columns(0, config_.hidden_size)},
                    x, out);
}

// Rows without an adapter have the bits of Backend::gated_mlp.
void GatedMlp::forward_by_steps(Backend& backend, const Tensor& x, const BlockAdapters& adapters,
                                Scratch& scratch, const Tensor& out) const {
  const Scratch::Frame frame(scratch);
  const int64_t width = config_.intermediate_size;
  const Tensor gate_up = scratch.take_rows(x.size(0), 2 * width);
  gate_up_.forward(backend, x, gate_up);
  adapters.add(backend, BlockProduct::gate_up, x, gate_up);
  const Tensor gate = gate_up.slice(1, 0, width), up = gate_up.slice(1, width, 2 * width);
  backend.gated_activation(config_.activation, gate, up, gate);
  down_.forward(backend, gate, out);
  adapters.add(backend, BlockProduct::down, gate, out);
}

}  // namespace paceline
