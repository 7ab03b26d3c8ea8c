// GatedMlp is down(activation(gate(x)) * up(x)) (Shazeer, "GLU Variants Improve Transformer",
// 2020).
#pragma once

#include <array>

#include <string>

#include "kernels/operands.h"
#include "layers/linear.h"

namespace paceline {

struct MlpConfig {
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  Activation activation = Activation::silu;
  bool bias = false;
};

class GatedMlp {
 public:
  // `name` is the canonical prefix, e.g. "layers.0.mlp".
  GatedMlp(const LoadContext& context, const std::string& name, const MlpConfig& config);

  // In place; x, out [rows, hidden]
  void forward(Backend& backend, const Tensor& x, const Tensor& out) const;

  std::array<const Linear*, 2> products() const { return {&gate_up_, &down_}; }

  // Its parts, for a pass that computes them in another way (training).
  const MlpConfig& config() const { return config_; }
  const Linear& gate_up() const { return gate_up_; }
  const Linear& down() const { return down_; }

 private:
  MlpConfig config_;
  Linear gate_up_;
  Linear down_;
};

}  // namespace paceline
