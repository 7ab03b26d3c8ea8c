// What a layer with a state does between its products, on arrays.
#pragma once

#include <span>
#include <utility>

#include "layers/mix_gradient.h"
#include "train/backend_operation.h"
#include "train/sequence_states.h"

namespace paceline {

// The sequences of a batch in a layer whose states have these numbers of elements.
struct LayerStates {
  const SequenceStates& sequences;
  LayerStateElements elements;
};

template <HasMixGradient Part>
class MixOperation final : public BackendOperation {
 public:
  MixOperation(Backend& backend, const Part& part, const LayerStates& states,
               std::span<const Tensor> own_gradients)
      : BackendOperation(backend), part_(part), states_(states), own_gradients_(own_gradients) {}

  std::string_view name() const override { return "mix"; }

  autodiff::Array forward(const autodiff::Arrays& inputs) const override {
    return forward_and_save(inputs, {true}).output;
  }

  autodiff::Forward forward_and_save(const autodiff::Arrays& inputs,
                                     const autodiff::Wanted& /*wanted*/) const override {
    const int64_t rows = inputs[0].size(0);
    autodiff::Array kept = new_array(inputs[0], {rows, part_.kept_width()});
    autodiff::Array out = new_array(inputs[0], {rows, part_.mixed_width()});
    const Tensor kept_rows = kept.writable(), out_rows = out.writable();
    for (const StateGroup& group : states_.sequences.groups()) {
      part_.mix(backend(), group.rows_of(inputs[0].tensor()), {group.slices}, states(),
                group.rows_of(kept_rows), group.rows_of(out_rows));
    }
    return {.output = std::move(out), .saved = {std::move(kept)}};
  }

  autodiff::Arrays vjp(const autodiff::Array& cotangent,
                       const autodiff::Application& application) const override {
    PL_CHECK(application.saved.size() == 1, "a vjp saves what the layer keeps");
    autodiff::Array dx = new_array(cotangent, application.inputs[0].shape());
    const Tensor dx_rows = dx.writable();
    part_.mix_gradient(backend(),
                       {.input = untraced(application.inputs[0]),
                        .kept = application.saved[0].tensor(),
                        .dout = untraced(cotangent),
                        .sequences = states_.sequences.sequences(),
                        .groups = states_.sequences.groups(),
                        .states = states(),
                        .own_gradients = own_gradients_},
                       dx_rows);
    return {std::move(dx)};
  }

  bool vjp_reads_output() const override { return false; }

 private:
  // States only matter while an operation runs: layers use the same blocks one after the other.
  StateStore states() const { return states_.sequences.states_of(states_.elements); }

  const Part& part_;
  LayerStates states_;
  std::span<const Tensor> own_gradients_;
};

// input [rows, outputs of the layer's first product] -> [rows, inputs of its last]. To
// `own_gradients` the gradients of the part's own weights are added, if there are any. All must
// outlive the arrays.
template <HasMixGradient Part>
autodiff::Array apply_mix(Backend& backend, const Part& part, const LayerStates& states,
                          std::span<const Tensor> own_gradients, const autodiff::Array& input) {
  return autodiff::apply_new<MixOperation<Part>>({input}, backend, part, states, own_gradients);
}

}  // namespace paceline
