#include "train/mamba1_operation.h"

#include <type_traits>
#include <utility>

#include "train/backend_operation.h"

namespace paceline {
namespace {

using autodiff::Application;
using autodiff::Array;
using autodiff::Arrays;

// What the steps of a layer share.
class ScanOperation : public BackendOperation {
 public:
  ScanOperation(Backend& backend, const Mamba1& mamba, const LayerStates& states,
                std::span<const Tensor> own_gradients)
      : BackendOperation(backend), mamba_(mamba), states_(states), own_gradients_(own_gradients) {}

  bool vjp_reads_output() const override { return false; }

 protected:
  const Mamba1& mamba() const { return mamba_; }
  std::span<const StateGroup> groups() const { return states_.sequences.groups(); }
  StateStore states() const { return states_.sequences.states_of(states_.elements); }
  MixGradientInputs gradient_inputs() const {
    return {.sequences = states_.sequences.sequences(),
            .groups = groups(),
            .states = states(),
            .own_gradients = own_gradients_};
  }

 private:
  const Mamba1& mamba_;
  LayerStates states_;
  std::span<const Tensor> own_gradients_;
};

// input [rows, 2 * inner] -> [rows, inner]
class ConvolveChannels final : public ScanOperation {
 public:
  using ScanOperation::ScanOperation;
  std::string_view name() const override { return "convolve_channels"; }

  Array forward(const Arrays& inputs) const override {
    Array mixed = new_array(inputs[0], {inputs[0].size(0), mamba().inner()});
    const Tensor out = mixed.writable();
    for (const StateGroup& group : groups()) {
      mamba().convolve(backend(), group.rows_of(inputs[0].tensor()), {group.slices}, states(),
                       group.rows_of(out));
    }
    return mixed;
  }

  Arrays vjp(const Array& cotangent, const Application& application) const override {
    MixGradientInputs in = gradient_inputs();
    in.input = untraced(application.inputs[0]);
    Array dinput = new_array(cotangent, application.inputs[0].shape());
    mamba().convolve_gradient(backend(), in, untraced(cotangent), dinput.writable());
    return {std::move(dinput)};
  }
};

// product [rows, parts] -> [rows, step_rank]
class ReadSteps final : public ScanOperation {
 public:
  using ScanOperation::ScanOperation;
  std::string_view name() const override { return "read_steps"; }

  Array forward(const Arrays& inputs) const override {
    Array steps = new_array(inputs[0], {inputs[0].size(0), mamba().step_rank()});
    mamba().read_steps(backend(), inputs[0].tensor(), steps.writable());
    return steps;
  }

  Arrays vjp(const Array& cotangent, const Application& application) const override {
    Array dproduct = new_array(cotangent, application.inputs[0].shape());
    mamba().read_steps_gradient(backend(), gradient_inputs(), untraced(application.inputs[0]),
                                untraced(cotangent), dproduct.writable());
    return {std::move(dproduct)};
  }
};

// The fields of Mamba1Rows -> [rows, inner]
class ScanChannels final : public ScanOperation {
 public:
  using ScanOperation::ScanOperation;
  std::string_view name() const override { return "selective_scan"; }

  Array forward(const Arrays& inputs) const override {
    return forward_and_save(inputs, {true}).output;
  }

  autodiff::Forward forward_and_save(const Arrays& inputs,
                                     const autodiff::Wanted& /*wanted*/) const override {
    const Extents shape = {inputs[0].size(0), mamba().inner()};
    Array kept = new_array(inputs[0], shape), out = new_array(inputs[0], shape);
    const Tensor kept_rows = kept.writable(), out_rows = out.writable();
    for (const StateGroup& group : groups()) {
      mamba().scan_rows(backend(),
                        {.input = group.rows_of(inputs[0].tensor()),
                         .mixed = group.rows_of(inputs[1].tensor()),
                         .product = group.rows_of(inputs[2].tensor()),
                         .steps = group.rows_of(inputs[3].tensor())},
                        {group.slices}, states(), group.rows_of(kept_rows),
                        group.rows_of(out_rows));
    }
    return {.output = std::move(out), .saved = {std::move(kept)}};
  }

  Arrays vjp(const Array& cotangent, const Application& application) const override {
    PL_CHECK(application.saved.size() == 1, "a vjp saves what the layer keeps");
    MixGradientInputs in = gradient_inputs();
    in.kept = application.saved[0].tensor();
    in.dout = untraced(cotangent);
    Arrays gradients;
    for (const Array& input : application.inputs) {
      gradients.push_back(new_array(cotangent, input.shape()));
    }
    const auto rows_of = [](const auto& tensor_of) -> Mamba1Rows {
      return {.input = tensor_of(0),
              .mixed = tensor_of(1),
              .product = tensor_of(2),
              .steps = tensor_of(3)};
    };
    mamba().scan_gradient(backend(), in,
                          rows_of([&](size_t i) { return untraced(application.inputs[i]); }),
                          rows_of([&](size_t i) { return gradients[i].writable(); }));
    return gradients;
  }
};

}  // namespace

Array apply_mamba1(Backend& backend, const Mamba1& mamba, const Mamba1Training& training,
                   const Dropout& dropout, const LayerStates& states, const Array& input) {
  const auto apply = [&]<class Step>(std::type_identity<Step>, Arrays inputs) {
    return autodiff::apply_new<Step>(std::move(inputs), backend, mamba, states,
                                     training.own_weights);
  };
  const auto [parts, step_product] = mamba.scan_products();
  const Array mixed = apply(std::type_identity<ConvolveChannels>(), {input});
  const Array product = apply_linear(backend, *parts, training.parts, dropout, mixed);
  const Array read = apply(std::type_identity<ReadSteps>(), {product});
  const Array steps = apply_linear(backend, *step_product, training.steps, dropout, read);
  return apply(std::type_identity<ScanChannels>(), {input, mixed, product, steps});
}

}  // namespace paceline
