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

void GatedMlp::forward(Backend& backend, const Tensor& x, const Tensor& out) const {
  const int64_t width = config_.intermediate_size;
  backend.gated_mlp({.activation = config_.activation,
                     .gate = gate_up_.columns(0, width),
                     .up = gate_up_.columns(width, width),
                     .down = down_.columns(0, config_.hidden_size)},
                    x, out);
}

}  // namespace paceline
