#include "train/linear_operation.h"

#include <optional>
#include <utility>

#include "train/backend_operation.h"

namespace paceline {
namespace {

using autodiff::Application;
using autodiff::Array;
using autodiff::Arrays;
using autodiff::Wanted;

class LinearOperation final : public BackendOperation {
 public:
  LinearOperation(Backend& backend, const Linear& linear, const LinearTraining& training,
                  const Dropout& dropout, Elements elements)
      : BackendOperation(backend),
        linear_(linear),
        training_(training),
        dropout_(dropout),
        elements_(elements) {}

  std::string_view name() const override { return "linear"; }

  Array forward(const Arrays& inputs) const override {
    const Tensor& x = inputs[0].tensor();
    Array y = new_array(inputs[0], {x.size(0), linear_.out_features()});
    if (elements_ == Elements::none) return y.without_elements();
    const Tensor out = y.writable();
    linear_.forward(backend(), x, out);
    std::vector<LoraSegment> segments;
    for (const LoraProjection& lora : training_.loras) {
      if (lora.b->is_zero() || x.size(0) == 0) continue;
      segments.push_back({.num_rows = x.size(0),
                          .a = &lora.a->packed(),
                          .b = &lora.b->packed(),
                          .first_column = lora.first_column});
      if (!dropout_.is_on()) continue;
      backend().add_lora(dropped(lora, inputs[0]).tensor(), segments, out);
      segments.clear();
    }
    backend().add_lora(x, segments, out);
    return y;
  }

  Arrays vjp(const Array& cotangent, const Application& application) const override {
    const Array& x = application.inputs[0];
    const Tensor& dy = untraced(cotangent);
    Array dx = new_array(cotangent, x.shape());
    const Tensor out = dx.writable();
    if (const auto of_weights = own_weight_gradient(linear_, training_, x)) {
      gradients().matmul_gradients(dy, linear_.weights().front(), *of_weights, out);
    } else {
      linear_input_gradient(backend(), linear_, dy, out);
    }
    if (training_.bias_gradient) gradients().bias_gradient(dy, *training_.bias_gradient);
    for (const LoraProjection& lora : training_.loras) add_lora_gradients(lora, x, cotangent, out);
    return {std::move(dx)};
  }

  bool vjp_reads_input(size_t /*index*/, const Wanted& /*wanted*/) const override {
    return !training_.loras.empty() || training_.weight_gradient.has_value();
  }
  bool vjp_reads_output() const override { return false; }

 private:
  static Tensor columns_of(const LoraProjection& lora, const Tensor& y) {
    return y.slice(1, lora.first_column, lora.first_column + lora.b->value().size(0));
  }

  // What A sees of x.
  Array dropped(const LoraProjection& lora, const Array& x) const {
    if (!dropout_.is_on()) return x;
    Array kept = new_array(x, x.shape());
    drop_elements(gradients(), dropout_, lora.module, {}, x.tensor(), kept.writable());
    return kept;
  }

  // x A^T  [rows, rank]
  Array inner_product(const LoraProjection& lora, const Array& x) const {
    Array inner = new_array(x, {x.size(0), lora.a->packed().n});
    backend().matmul(x.tensor(), lora.a->packed(), nullptr, inner.writable());
    return inner;
  }

  void add_lora_gradients(const LoraProjection& lora, const Array& input, const Array& cotangent,
                          const Tensor& dx) const {
    const Tensor dy = columns_of(lora, cotangent.tensor());
    const Array x = dropped(lora, input);
    const Array inner = inner_product(lora, x);
    gradients().matmul_weight_gradient(dy, inner.tensor(), lora.b->rounding(),
                                       lora.b->pass_gradient());
    if (lora.b->is_zero()) return;  // so are the gradients of A and x
    Array d_inner = new_array(cotangent, inner.shape());
    gradients().matmul_input_gradient(dy, lora.b->packed(), d_inner.writable());
    gradients().matmul_weight_gradient(d_inner.tensor(), x.tensor(), lora.a->rounding(),
                                       lora.a->pass_gradient());
    if (!dropout_.is_on()) {
      gradients().add_matmul_input_gradient(d_inner.tensor(), lora.a->packed(), dx);
      return;
    }
    Array part = new_array(cotangent, dx.shape());
    const Tensor d_kept = part.writable();
    gradients().matmul_input_gradient(d_inner.tensor(), lora.a->packed(), d_kept);
    drop_elements(gradients(), dropout_, lora.module, {}, d_kept, d_kept);
    backend().add(dx, d_kept, dx);
  }

  const Linear& linear_;
  const LinearTraining& training_;
  const Dropout& dropout_;
  Elements elements_;
};

}  // namespace

Array apply_linear(Backend& backend, const Linear& linear, const LinearTraining& training,
                   const Dropout& dropout, const Array& x, Elements elements) {
  return autodiff::apply_new<LinearOperation>({x}, backend, linear, training, dropout, elements);
}

std::optional<WeightGradient> own_weight_gradient(const Linear& linear,
                                                  const LinearTraining& training, const Array& x) {
  if (!training.weight_gradient) return {};
  return WeightGradient{.x = x.tensor(),
                        .rounding = rounding_of(linear.weights().front()),
                        .dw = *training.weight_gradient};
}

void linear_input_gradient(Backend& backend, const Linear& linear, const Tensor& dy,
                           const Tensor& dx) {
  int64_t first = 0;
  for (const PackedMatrix& weight : linear.weights()) {
    const Tensor columns = dy.slice(1, first, first + weight.n);
    if (first == 0) {
      backend.gradients().matmul_input_gradient(columns, weight, dx);
    } else {
      backend.gradients().add_matmul_input_gradient(columns, weight, dx);
    }
    first += weight.n;
  }
}

OperandRounding rounding_of(const PackedMatrix& weights) {
  return weights.dtype == DType::bf16 ? OperandRounding::bfloat16 : OperandRounding::none;
}

}  // namespace paceline
