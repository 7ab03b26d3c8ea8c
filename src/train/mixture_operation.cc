#include "train/mixture_operation.h"

#include <utility>
#include <vector>

#include "train/backend_operation.h"
#include "train/block_operations.h"
#include "train/linear_operation.h"
#include "train/mlp_operation.h"
#include "train/route_gradient.h"
#include "train/trained_experts.h"

namespace paceline {
namespace {

using autodiff::Application;
using autodiff::Array;
using autodiff::Arrays;

// Inputs are what the router reads, and what experts read where that differs.
class MixtureOperation final : public BackendOperation {
 public:
  MixtureOperation(Backend& backend, const Mixture& mixture, const MixtureTraining& training,
                   const Dropout& dropout)
      : BackendOperation(backend), mixture_(mixture), training_(training), dropout_(dropout) {}

  std::string_view name() const override { return "mixture"; }

  Array forward(const Arrays& inputs) const override {
    const Tensor& x = inputs[0].tensor();
    if (training_.has_loras() && dropout_.is_on()) return forward_with_dropout(inputs);
    Array y = new_array(inputs[0], inputs.back().shape());
    Scratch dry_run;
    const MixtureScratch of_routing(dry_run, mixture_.config(), x.size(1), x.size(0));
    ListExpertSegments list;
    if (training_.has_loras()) {
      take_expert_steps(dry_run, mixture_.config(), inputs.back().size(1), x.size(0));
      list = [this](BlockProduct product, const RowsOfExpert& rows,
                    std::vector<LoraSegment>& segments) {
        const ExpertTraining& expert = training_.experts[rows.expert];
        const bool is_down = product == BlockProduct::down;
        list_trained_segments(is_down ? expert.down : expert.gate_up, rows, segments);
      };
    }
    Scratch scratch(backend().memory(), dry_run.most_used_bytes());
    mixture_.mix_experts(backend(), x, inputs.back().tensor(), list, scratch, y.writable());
    return y;
  }

  // Adds up each row's gradients by its experts in ascending order, the router's at last.
  Arrays vjp(const Array& cotangent, const Application& application) const override {
    const Tensor& x = untraced(application.inputs.front());
    const Tensor& dy = untraced(cotangent);
    const Routed routed(backend(), mixture_, x);
    Arrays gradients;
    for (const Array& input : application.inputs) {
      gradients.emplace_back(cotangent.context(), DType::f32, input.shape());
    }
    const HostRouting chosen = backend().read_routing(routed.routing);
    const std::vector<double> dweights =
        add_experts(chosen, untraced(application.inputs.back()), dy, gradients.back().writable());
    add_router(routed, chosen, dweights, x, gradients.front().writable());
    return gradients;
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

  Array forward_with_dropout(const Arrays& inputs) const {
    const Tensor& x = inputs.back().tensor();
    Array y(inputs[0].context(), DType::f32, inputs.back().shape());
    const Tensor out = y.writable();
    const Routed routed(backend(), mixture_, inputs[0].tensor());
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
  const auto mix_experts = [&](const Arrays& inputs) {
    return autodiff::apply_new<MixtureOperation>(inputs, backend, mixture, training, dropout);
  };
  const auto linear = [&](const Linear& of, const LinearTraining& trained, const Array& in) {
    return apply_linear(backend, of, trained, dropout, in);
  };
  const Mixture::Latent* const latent = mixture.latent();
  if (latent == nullptr) return mix_experts({x});
  const LatentTraining& trained = training.latent;
  const Array mixed = mix_experts({x, linear(latent->to, trained.to, x)});
  const Array inner = apply_mlp_inner(backend, latent->shared, trained.shared.gate_up, dropout, x);
  return apply_sum(backend, linear(latent->from, trained.from, mixed),
                   linear(latent->shared.down(), trained.shared.down, inner), 1.0f);
}

}  // namespace paceline
