#include "train/mlp_operation.h"

#include <optional>
#include <utility>

#include "train/backend_operation.h"

namespace paceline {
namespace {

using autodiff::Application;
using autodiff::Array;
using autodiff::Arrays;
using autodiff::Wanted;

// gate_up [rows, up_width] -> [rows, inner]
class MlpActivation final : public BackendOperation {
 public:
  MlpActivation(Backend& backend, const GatedMlp& mlp) : BackendOperation(backend), mlp_(mlp) {}

  std::string_view name() const override { return "mlp_activation"; }

  Array forward(const Arrays& inputs) const override {
    const Tensor& gate_up = inputs[0].tensor();
    Array y = new_array(inputs[0], {gate_up.size(0), mlp_.config().intermediate_size});
    mlp_.activate(backend(), gate_up, y.writable());
    return y;
  }

  Arrays vjp(const Array& cotangent, const Application& application) const override {
    const Tensor& gate_up = untraced(application.inputs[0]);
    Array dx = new_array(cotangent, gate_up.shape());
    mlp_.activation_gradient(backend(), gate_up, untraced(cotangent), dx.writable());
    return {std::move(dx)};
  }

  bool vjp_reads_output() const override { return false; }

 private:
  const GatedMlp& mlp_;
};

// The products of gate and up and their activation together, so that the products' gradients never
// exist together.
class GatedProduct final : public BackendOperation {
 public:
  GatedProduct(Backend& backend, const Linear& linear, const LinearTraining& training,
               Activation kind)
      : BackendOperation(backend), linear_(linear), training_(training), kind_(kind) {}

  std::string_view name() const override { return "gated_product"; }

  Array forward(const Arrays& inputs) const override {
    return forward_and_save(inputs, {true}).output;
  }

  autodiff::Forward forward_and_save(const Arrays& inputs,
                                     const Wanted& /*wanted*/) const override {
    const int64_t rows = inputs[0].size(0), width = linear_.out_features() / 2;
    Array gate_up = new_array(inputs[0], {rows, 2 * width});
    const Tensor halves = gate_up.writable();
    linear_.forward(backend(), inputs[0].tensor(), halves);
    Array y = new_array(inputs[0], {rows, width});
    backend().gated_activation(kind_, halves.slice(1, 0, width), halves.slice(1, width, 2 * width),
                               y.writable());
    return {.output = y, .saved = {gate_up}};
  }

  Arrays vjp(const Array& cotangent, const Application& application) const override {
    const Array& x = application.inputs[0];
    PL_CHECK(application.saved.size() == 1, "a vjp saves the linear's outputs");
    const Tensor& gate_up = application.saved[0].tensor();
    const int64_t width = gate_up.size(1) / 2;
    Array dx = new_array(cotangent, x.shape());
    const auto of_weights = own_weight_gradient(linear_, training_, x);
    gradients().gated_matmul_gradients(kind_,
                                       {.gate = gate_up.slice(1, 0, width),
                                        .up = gate_up.slice(1, width, 2 * width),
                                        .dout = untraced(cotangent)},
                                       linear_.weights().front(),
                                       of_weights ? &*of_weights : nullptr, dx.writable());
    return {std::move(dx)};
  }

  bool vjp_reads_input(size_t /*index*/, const Wanted& /*wanted*/) const override {
    return training_.weight_gradient.has_value();
  }
  bool vjp_reads_output() const override { return false; }

 private:
  const Linear& linear_;
  const LinearTraining& training_;
  Activation kind_;
};

// The gradients of LoRA matrices and biases need those of the products' outputs, and so do scales.
bool is_plain_product(const GatedMlp& mlp, const LinearTraining& training) {
  return mlp.config().gated && mlp.config().gate_scale == 1.0f &&
         mlp.gate_up().weights().size() == 1 && training.loras.empty() && !training.bias_gradient;
}

}  // namespace

Array apply_mlp_inner(Backend& backend, const GatedMlp& mlp, const LinearTraining& training,
                      const Dropout& dropout, const Array& x) {
  if (is_plain_product(mlp, training)) {
    return autodiff::apply_new<GatedProduct>({x}, backend, mlp.gate_up(), training,
                                             mlp.config().activation);
  }
  const Array gate_up = apply_linear(backend, mlp.gate_up(), training, dropout, x);
  return autodiff::apply_new<MlpActivation>({gate_up}, backend, mlp);
}

}  // namespace paceline
