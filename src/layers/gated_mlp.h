// GatedMlp is down(activation(gate(x)) * up(x)) (Shazeer, "GLU Variants Improve Transformer",
// 2020), or without a gate down(activation(up(x))).
#pragma once

#include <array>
#include <optional>
#include <string>

#include "kernels/operands.h"
#include "layers/adapter_weights.h"
#include "layers/linear.h"
#include "layers/scratch.h"

namespace paceline {

// What the projections are called.
struct MlpNames {
  std::string gate = "gate_proj";
  std::string up = "up_proj";
  std::string down = "down_proj";
  std::string gate_up = "gate_up_proj";  // gate and up as one matrix

  bool operator==(const MlpNames&) const = default;
};

struct MlpConfig {
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  Activation activation = Activation::silu;
  bool bias = false;
  bool down_bias = false;  // of down alone
  bool gated = true;
  bool self_gated = false;  // without a gate: up takes its place
  float gate_scale = 1.0f;  // of gates before the activation
  // Gates less their mean and so many standard deviations, if more than 0, before the activation:
  // Backend::gaussian_top_k.
  std::optional<float> gate_deviations = {};
  bool xielu = false;          // without a gate: the activation, with weights of the files (act_fn)
  bool fused_gate_up = false;  // the files hold gate and up as one matrix
  bool up_first = false;       // with up in front
  MlpNames names = {};

  // Of gate and up together.
  int64_t up_width() const { return (gated ? 2 : 1) * intermediate_size; }
  // Whether forward() computes one product after the other, with scratch of [rows, up_width()]
  // between them, whatever the adapters.
  bool has_steps() const { return !gated || gate_scale != 1.0f || gate_deviations.has_value(); }
};

class GatedMlp {
 public:
  // `name` is the canonical prefix, e.g. "layers.0.mlp".
  GatedMlp(const LoadContext& context, const std::string& name, const MlpConfig& config);

  // In place; x, out [rows, hidden]. Takes scratch of [rows, up_width()] where it has steps or
  // adapters change a row; else nothing has that size.
  void forward(Backend& backend, const Tensor& x, const BlockAdapters& adapters, Scratch& scratch,
               const Tensor& out) const;

  // For Backend::gated_mlp, of one that is gated, by itself or not; they live as long as this.
  GatedMlpWeights weights() const;

  std::array<const Linear*, 2> products() const { return {&gate_up_, &down_}; }

  // The inputs of down: gate_up [rows, up_width()], out [rows, intermediate_size], which may be the
  // first columns of gate_up.
  void activate(Backend& backend, const Tensor& gate_up, const Tensor& out) const;
  // Its gradient, for training; dgate_up may be gate_up.     dout [rows, intermediate_size]
  void activation_gradient(Backend& backend, const Tensor& gate_up, const Tensor& dout,
                           const Tensor& dgate_up) const;
  int64_t up_width() const { return config_.up_width(); }

  // Its parts, for a pass that computes them in another way (training).
  const MlpConfig& config() const { return config_; }
  const Linear& gate_up() const { return gate_up_; }  // up alone without a gate
  const Linear& down() const { return down_; }
  // The same, for training to replace their values.
  Linear& gate_up() { return gate_up_; }
  Linear& down() { return down_; }

 private:
  void forward_by_steps(Backend& backend, const Tensor& x, const BlockAdapters& adapters,
                        Scratch& scratch, const Tensor& out) const;

  MlpConfig config_;
  Linear gate_up_;
  Linear down_;
  std::optional<XieluWeights> xielu_;
};

}  // namespace paceline
