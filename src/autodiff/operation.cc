// How an operation is applied under the transformations that follow its inputs: the innermost one
// takes its traces off, lets the operation run under those outside, and follows the result.
#include "autodiff/operation.h"

#include <algorithm>
#include <utility>

#include "autodiff/elementwise.h"
#include "autodiff/tape.h"

namespace paceline::autodiff {
namespace {

// An operation that a tape has recorded.
class AppliedOperation final : public TapeStep {
 public:
  AppliedOperation(std::shared_ptr<const Operation> operation, const Arrays& inputs, Wanted wanted,
                   Forward forward)
      : operation_(std::move(operation)),
        wanted_(std::move(wanted)),
        output_(operation_->vjp_reads_output() ? forward.output
                                               : forward.output.without_elements()),
        saved_(std::move(forward.saved)) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool is_read = operation_->vjp_reads_input(i, wanted_);
      inputs_.push_back(is_read ? inputs[i] : inputs[i].without_elements());
    }
  }

  Arrays pull_back(const Arrays& cotangents) const override {
    return operation_->vjp(
        cotangents.front(),
        {.inputs = inputs_, .output = output_, .saved = saved_, .wanted = wanted_});
  }

 private:
  std::shared_ptr<const Operation> operation_;
  Wanted wanted_;
  Arrays inputs_;
  Array output_;
  Arrays saved_;
};

Array apply_on_tape(const std::shared_ptr<const Operation>& operation, const Arrays& inputs,
                    Tape& tape) {
  tape.check_usable();
  Wanted wanted;
  for (const Array& input : inputs) {
    wanted.push_back(input.traced() != nullptr && input.traced()->level == tape.level());
  }
  const Arrays values = strip(inputs, tape.level());
  Forward forward = innermost(values) == nullptr
                        ? operation->forward_and_save(values, wanted)
                        : Forward{.output = apply_operation(operation, values)};
  const Array output = forward.output;
  auto step = std::make_unique<const AppliedOperation>(operation, values, std::move(wanted),
                                                       std::move(forward));
  return tape.record(std::move(step), inputs, {output}).front();
}

Array apply_with_tangents(const std::shared_ptr<const Operation>& operation, const Arrays& inputs,
                          uint64_t level) {
  const Arrays values = strip(inputs, level);
  Array output = apply_operation(operation, values);
  Arrays tangents;
  bool any = false;
  for (const Array& input : inputs) {
    const Traced* traced = input.traced();
    const bool is_followed = traced != nullptr && traced->level == level;
    tangents.push_back(is_followed ? traced->tangent : Array());
    any = any || tangents.back().is_defined();
  }
  if (!any) return output;
  const Array tangent = operation->jvp(tangents, values, output);
  if (!tangent.is_defined()) return output;
  return Array(
      Traced{.level = level, .value = output, .tangent = convert(tangent, output.dtype())});
}

}  // namespace

Forward Operation::forward_and_save(const Arrays& inputs, const Wanted& /*wanted*/) const {
  return {.output = forward(inputs)};
}

bool Operation::vjp_reads_input(size_t /*index*/, const Wanted& /*wanted*/) const { return true; }

Array apply_operation(const std::shared_ptr<const Operation>& operation, const Arrays& inputs) {
  const Traced* inner = innermost(inputs);
  if (inner == nullptr) return operation->forward(inputs);
  if (inner->tape != nullptr) return apply_on_tape(operation, inputs, *inner->tape);
  return apply_with_tangents(operation, inputs, inner->level);
}

}  // namespace paceline::autodiff
