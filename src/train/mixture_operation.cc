#include "train/mixture_operation.h"

#include <utility>
#include <vector>

#include "train/backend_operation.h"
#include "train/linear_operation.h"
#include "train/route_gradient.h"
#include "train/trained_experts.h"

namespace paceline {
namespace {

using autodiff::Application;
using autodiff::Array;
using autodiff::Arrays;

class MixtureOperation final : public BackendOperation {
 public:
  MixtureOperation(Backend& backend, const Mixture& mixture, const MixtureTraining& training,
                   const Dropout& dropout)
      : BackendOperation(backend), mixture_(mixture), training_(training), dropout_(dropout) {}

  std::string_view name() const override { return "mixture"; }

  Array forward(const Arrays& inputs) const override {
    const Tensor& x = inputs[0].tensor();
    if (training_.has_loras() && dropout_.is_on()) return forward_with_dropout(inputs[0]);
    Array y = new_array(inputs[0], inputs[0].shape());
    Scratch dry_run;
    const MixtureScratch of_routing(dry_run, mixture_.config(), x.size(1), x.size(0));
    ListExpertSegments list;
    if (training_.has_loras()) {
      take_expert_steps(dry_run, mixture_.config(), x.size(1), x.size(0));
      list = [this](BlockProduct product, const RowsOfExpert& rows,
                    std::vector<LoraSegment>& segments) {
        const ExpertTraining& expert = training_.experts[rows.expert];
        const bool is_down = product == BlockProduct::down;
        list_trained_segments(is_down ? expert.down : expert.gate_up, rows, segments);
      };
    }
    Scratch scratch(backend().memory(), dry_run.most_used_bytes());
    mixture_.forward(backend(), x, list, scratch, y.writable());
    return y;
  }

  // Adds up each row's gradients by its experts in ascending order, the router's at last.
  Arrays vjp(const Array& cotangent, const Application& application) const override {
    const Tensor& x = untraced(application.inputs[0]);
    const Tensor& dy = untraced(cotangent);
    const Routed routed(backend(), mixture_, x);
    Array dx(cotangent.context(), DType::f32, cotangent.shape());
    const Tensor out = dx.writable();
    const HostRouting chosen = backend().read_routing(routed.routing);
    add_router(routed, chosen, add_experts(chosen, x, dy, out), x, out);
    return {std::move(dx)};
  }

  bool vjp_reads_output() const override { return false; }

 private:
  // The choice of a batch's experts.
  struct Routed {
    Routed(Backend& backend, const Mixture& mixture, const Tensor& x)
        : params(mixture.config().routing),
          logits(allocate_tensor(backend.memory(), DType::f32, {x.size(0), params.num_logits()})),
          experts(allocate_tensor(backend.memory(), DType::i32, {x.size(0), params.num_slots()})),
          weights(allocate_tensor(backend.memory(), DType::f32, {x.size(0), params.num_slots()})),
          routing{.experts = experts.view, .weights = weights.view} {
      mixture.route(backend, x, logits.view, routing);
    }
    const RoutingParams& params;
    OwnedTensor logits, experts, weights;
    Routing routing;
  };

  TrainedExperts::Rows rows_of(const SortedExperts& sorted, const RowsOfExpert& group) const {
    return {.batch_rows = group.batch_rows,
            .weights = sorted.weights().subspan(static_cast<size_t>(group.first_row),
                                                group.batch_rows.size())};
  }

  Array forward_with_dropout(const Array& input) const {
    const Tensor& x = input.tensor();
    Array y(input.context(), DType::f32, input.shape());
    const Tensor out = y.writable();
    const Routed routed(backend(), mixture_, x);
    const SortedExperts sorted(backend().read_routing(routed.routing), mixture_.experts().size());
    const TrainedExperts experts(backend(), dropout_);
    for (const RowsOfExpert& group : sorted.groups()) {
      experts.add_outputs(mixture_.experts()[group.expert], training_.experts[group.expert],
                          rows_of(sorted, group), x, out);
    }
    return y;
  }

  // Returns the gradients of the weights of all slots.
  std::vector<double> add_experts(const HostRouting& chosen, const Tensor& x, const Tensor& dy,
                                  const Tensor& dx) const {
    const SortedExperts sorted(chosen, mixture_.experts().size());
    const TrainedExperts experts(backend(), dropout_);
    std::vector<double> dweights(sorted.places().size()), of_expert;
    for (const RowsOfExpert& group : sorted.groups()) {
      of_expert.assign(group.batch_rows.size(), 0.0);
      experts.add_gradients(mixture_.experts()[group.expert],
                            training_.experts.empty() ? nullptr : &training_.experts[group.expert],
                            rows_of(sorted, group), x, dy, dx, of_expert);
      const auto places = sorted.places().subspan(static_cast<size_t>(group.first_row));
      for (size_t i = 0; i < of_expert.size(); ++i) dweights[places[i]] = of_expert[i];
    }
    return dweights;
  }

  void add_router(const Routed& routed, const HostRouting& chosen, std::span<const double> dweights,
                  const Tensor& x, const Tensor& dx) const {
    std::vector<float> copy;
    const std::span<const float> all = backend().read(routed.logits.view, copy);
    const auto width = static_cast<size_t>(routed.params.num_logits());
    const auto slots = static_cast<size_t>(chosen.num_slots);
    std::vector<float> dlogits(all.size());
    for (size_t row = 0; row < static_cast<size_t>(x.size(0)); ++row) {
      route_gradient(routed.params, all.subspan(row * width, width), chosen.experts_of(row),
                     dweights.subspan(row * slots, slots),
                     std::span(dlogits).subspan(row * width, width));
    }
    const OwnedTensor gradient = new_tensor(x.size(0), routed.params.num_logits());
    backend().write(dlogits, gradient.view);
    const OwnedTensor part = new_tensor(dx.size(0), dx.size(1));
    linear_input_gradient(backend(), mixture_.router(), gradient.view, part.view);
    backend().add(dx, part.view, dx);
    if (training_.router.weight_gradient) {
      gradients().matmul_weight_gradient(gradient.view, x, OperandRounding::none,
                                         *training_.router.weight_gradient);
    }
  }

  OwnedTensor new_tensor(int64_t rows, int64_t width) const {
    return allocate_tensor(backend().memory(), DType::f32, {rows, width});
  }

  const Mixture& mixture_;
  const MixtureTraining& training_;
  const Dropout& dropout_;
};

}  // namespace

Array apply_mixture(Backend& backend, const Mixture& mixture, const MixtureTraining& training,
                    const Dropout& dropout, const Array& x) {
  return autodiff::apply_new<MixtureOperation>({x}, backend, mixture, training, dropout);
}

}  // namespace paceline
