#include "train/mixture_operation.h"

#include <utility>
#include <vector>

#include "train/backend_operation.h"
#include "train/linear_operation.h"
#include "train/route_gradient.h"

namespace paceline {
namespace {

using autodiff::Application;
using autodiff::Array;
using autodiff::Arrays;

// The rows of one expert, in ascending order.
struct RowsOfExpert {
  std::vector<int32_t> rows;
  std::vector<float> weights;
  std::vector<size_t> slots;  // row * num_slots + slot
};

class MixtureOperation final : public BackendOperation {
 public:
  MixtureOperation(Backend& backend, const Mixture& mixture)
      : BackendOperation(backend), mixture_(mixture) {}

  std::string_view name() const override { return "mixture"; }

  Array forward(const Arrays& inputs) const override {
    const Tensor& x = inputs[0].tensor();
    Array y = new_array(inputs[0], inputs[0].shape());
    Scratch scratch(backend().memory(), mixture_scratch_bytes(mixture_.config(), x.size(0)));
    mixture_.forward(backend(), x, scratch, y.writable());
    return y;
  }

  // Adds up each row's gradients by its experts in ascending order, the router's at last.
  Arrays vjp(const Array& cotangent, const Application& application) const override {
    const Tensor& x = untraced(application.inputs[0]);
    const Tensor& dy = untraced(cotangent);
    Memory& memory = backend().memory();
    const RoutingParams& params = mixture_.config().routing;
    Array logits = new_array(cotangent, {x.size(0), params.num_logits()});
    const OwnedTensor experts =
        allocate_tensor(memory, DType::i32, {x.size(0), params.num_slots()});
    const OwnedTensor weights =
        allocate_tensor(memory, DType::f32, {x.size(0), params.num_slots()});
    const Routing routing = {.experts = experts.view, .weights = weights.view};
    mixture_.route(backend(), x, logits.writable(), routing);

    Array dx(cotangent.context(), DType::f32, cotangent.shape());
    const Tensor out = dx.writable();
    std::vector<double> dweights(static_cast<size_t>(x.size(0) * params.num_slots()));
    const std::vector<RowsOfExpert> by_expert = sort_by_expert(routing);
    for (size_t i = 0; i < by_expert.size(); ++i) {
      if (by_expert[i].rows.empty()) continue;
      add_expert(mixture_.experts()[i], by_expert[i], x, dy, out, dweights);
    }
    add_router(logits, routing, dweights, out);
    return {std::move(dx)};
  }

  bool vjp_reads_output() const override { return false; }

 private:
  std::vector<RowsOfExpert> sort_by_expert(const Routing& routing) const {
    std::vector<RowsOfExpert> by_expert(mixture_.experts().size());
    for (int64_t row = 0; row < routing.num_rows(); ++row) {
      const ChosenRow chosen = routing.row(row);
      for (int64_t slot = 0; slot < routing.num_slots(); ++slot) {
        RowsOfExpert& group = by_expert[static_cast<size_t>(chosen.experts[slot])];
        group.rows.push_back(static_cast<int32_t>(row));
        group.weights.push_back(chosen.weights[slot]);
        group.slots.push_back(static_cast<size_t>(row * routing.num_slots() + slot));
      }
    }
    return by_expert;
  }

  OwnedTensor gathered(const Tensor& x, std::span<const int32_t> rows) const {
    OwnedTensor out = new_tensor(std::ssize(rows), x.size(1));
    backend().gather_rows(x, rows, out.view);
    return out;
  }
  OwnedTensor new_tensor(int64_t rows, int64_t width) const {
    return allocate_tensor(backend().memory(), DType::f32, {rows, width});
  }

  // dx[row] += weight * the gradient of the expert; dweights = the expert's output times dy.
  void add_expert(const GatedMlp& expert, const RowsOfExpert& group, const Tensor& all_x,
                  const Tensor& all_dy, const Tensor& dx, std::vector<double>& dweights) const {
    const OwnedTensor x = gathered(all_x, group.rows), dy = gathered(all_dy, group.rows);
    const int64_t rows = x.view.size(0), width = expert.config().intermediate_size;
    const Activation kind = expert.config().activation;
    const OwnedTensor gate_up = new_tensor(rows, 2 * width), inner = new_tensor(rows, width);
    const Tensor gate = gate_up.view.slice(1, 0, width);
    const Tensor up = gate_up.view.slice(1, width, 2 * width);
    const OwnedTensor output = new_tensor(rows, all_x.size(1));
    expert.gate_up().forward(backend(), x.view, gate_up.view);
    backend().gated_activation(kind, gate, up, inner.view);
    expert.down().forward(backend(), inner.view, output.view);
    multiply_rows(output.view, dy.view, group.slots, dweights);

    backend().scale(dy.view, group.weights, dy.view);
    linear_input_gradient(backend(), expert.down(), dy.view, inner.view);
    gradients().gated_activation_gradient(kind, {.gate = gate, .up = up, .dout = inner.view}, gate,
                                          up);
    linear_input_gradient(backend(), expert.gate_up(), gate_up.view, x.view);
    gradients().embedding_gradient(group.rows, 1.0f, x.view, dx);
  }

  // out[slots[r]] = the sum of a[r] * b[r].
  void multiply_rows(const Tensor& a, const Tensor& b, std::span<const size_t> slots,
                     std::vector<double>& out) const {
    std::vector<float> a_copy, b_copy;
    const std::span<const float> all_a = backend().read(a, a_copy),
                                 all_b = backend().read(b, b_copy);
    const auto width = static_cast<size_t>(a.size(1));
    for (size_t row = 0; row < slots.size(); ++row) {
      double sum = 0;
      for (size_t i = row * width; i < (row + 1) * width; ++i) {
        sum += double{all_a[i]} * double{all_b[i]};
      }
      out[slots[row]] = sum;
    }
  }

  void add_router(const Array& logits, const Routing& routing, std::span<const double> dweights,
                  const Tensor& dx) const {
    std::vector<float> copy;
    const std::span<const float> all = backend().read(logits.tensor(), copy);
    const auto width = static_cast<size_t>(logits.size(1));
    const auto slots = static_cast<size_t>(routing.num_slots());
    std::vector<float> dlogits(all.size());
    for (size_t row = 0; row < static_cast<size_t>(routing.num_rows()); ++row) {
      const ChosenRow chosen = routing.row(static_cast<int64_t>(row));
      route_gradient(mixture_.config().routing, all.subspan(row * width, width),
                     {chosen.experts, slots}, dweights.subspan(row * slots, slots),
                     std::span(dlogits).subspan(row * width, width));
    }
    const OwnedTensor gradient = new_tensor(logits.size(0), logits.size(1));
    backend().write(dlogits, gradient.view);
    const OwnedTensor part = new_tensor(dx.size(0), dx.size(1));
    linear_input_gradient(backend(), mixture_.router(), gradient.view, part.view);
    backend().add(dx, part.view, dx);
  }

  const Mixture& mixture_;
};

}  // namespace

Array apply_mixture(Backend& backend, const Mixture& mixture, const Array& x) {
  return autodiff::apply_new<MixtureOperation>({x}, backend, mixture);
}

}  // namespace paceline
