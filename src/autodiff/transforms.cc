#include "autodiff/transforms.h"

#include <fmt/format.h>

#include <utility>

#include "autodiff/elementwise.h"
#include "autodiff/shape_error.h"
#include "autodiff/tape.h"
#include "base/error.h"

namespace paceline::autodiff {
namespace {

// Frees a tape however its vjp ends.
class ClosesTape {
 public:
  explicit ClosesTape(Tape& tape) : tape_(tape) {}
  ~ClosesTape() { tape_.close(); }
  ClosesTape(const ClosesTape&) = delete;
  ClosesTape& operator=(const ClosesTape&) = delete;

 private:
  Tape& tape_;
};

void check_fit(std::string_view transformation, std::string_view what, const Arrays& arrays,
               const Arrays& directions) {
  if (arrays.size() != directions.size()) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: {} {}: expected {}, one for each array", transformation,
                            directions.size(), what, arrays.size()));
  }
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (!directions[i].is_defined()) continue;
    check_float(transformation, directions[i]);
    if (arrays[i].shape() == directions[i].shape()) continue;
    throw_shapes(transformation, {arrays[i], directions[i]},
                 fmt::format("{} of the shape of their arrays", what));
  }
}

Array zeros_like(const Array& array) {
  return Array(array.context(), array.dtype(), array.shape());
}

using CotangentsOf = std::function<Arrays(const Arrays& outputs)>;

// vjp with cotangents that follow from the outputs; followed[i]: whether primal i is followed.
Vjp vjp_from_outputs(const Function& function, const Arrays& primals, const Wanted& followed,
                     const CotangentsOf& cotangents_of) {
  const auto tape = std::make_shared<Tape>(next_level());
  const ClosesTape closes(*tape);
  Arrays outputs;
  size_t num_followed = 0;
  {
    Arrays arguments = primals;
    for (size_t i = 0; i < primals.size(); ++i) {
      if (!followed[i]) continue;
      check_float("vjp", primals[i]);
      arguments[i] = tape->follow(primals[i]);
      ++num_followed;
    }
    outputs = function(arguments);
  }  // the tape alone holds what its steps read
  Arrays values = strip(outputs, tape->level());
  Arrays cotangents = cotangents_of(values);
  Vjp result{.outputs = std::move(values),
             .gradients = tape->pull_back(outputs, cotangents, num_followed)};
  size_t next = 0;
  for (size_t i = 0; i < primals.size(); ++i) {
    if (!followed[i]) continue;
    Array& gradient = result.gradients[next++];
    if (!gradient.is_defined()) gradient = zeros_like(primals[i]);
  }
  return result;
}

// A call of a checkpointed function.
class CheckpointedCall final : public TapeStep {
 public:
  CheckpointedCall(Function function, Arrays inputs, Wanted wanted, const Arrays& outputs)
      : function_(std::move(function)), inputs_(std::move(inputs)), wanted_(std::move(wanted)) {
    for (const Array& output : outputs) outputs_.push_back(output.without_elements());
  }

  Arrays pull_back(const Arrays& cotangents) const override {
    Arrays defined = cotangents;
    for (size_t i = 0; i < defined.size(); ++i) {
      if (!defined[i].is_defined()) defined[i] = zeros_like(outputs_[i]);
    }
    Vjp recomputed =
        vjp_from_outputs(function_, inputs_, wanted_, [&](const Arrays&) { return defined; });
    Arrays gradients(inputs_.size());
    size_t next = 0;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (wanted_[i]) gradients[i] = std::move(recomputed.gradients[next++]);
    }
    return gradients;
  }

 private:
  Function function_;
  Arrays inputs_;
  Wanted wanted_;
  Arrays outputs_;  // without elements
};

Arrays call_checkpointed(const Function& function, const Arrays& inputs) {
  const Traced* inner = innermost(inputs);
  if (inner == nullptr || inner->tape == nullptr) return function(inputs);
  Tape& tape = *inner->tape;
  tape.check_usable();
  Wanted wanted;
  for (const Array& input : inputs) {
    wanted.push_back(input.traced() != nullptr && input.traced()->level == tape.level());
  }
  const Arrays values = strip(inputs, tape.level());
  Arrays outputs;
  {
    const Tape::Pause pause(tape);
    outputs = call_checkpointed(function, values);
  }
  auto step =
      std::make_unique<const CheckpointedCall>(function, values, std::move(wanted), outputs);
  return tape.record(std::move(step), inputs, outputs);
}

}  // namespace

Vjp vjp(const Function& function, const Arrays& primals, const Arrays& cotangents) {
  return vjp_from_outputs(function, primals, Wanted(primals.size(), true),
                          [&](const Arrays& outputs) {
                            check_fit("vjp", "cotangents", outputs, cotangents);
                            return cotangents;
                          });
}

Jvp jvp(const Function& function, const Arrays& primals, const Arrays& tangents) {
  check_fit("jvp", "tangents", primals, tangents);
  const uint64_t level = next_level();
  Arrays arguments = primals;
  for (size_t i = 0; i < primals.size(); ++i) {
    if (!tangents[i].is_defined()) continue;
    check_float("jvp", primals[i]);
    arguments[i] = Array(Traced{
        .level = level, .value = primals[i], .tangent = convert(tangents[i], primals[i].dtype())});
  }
  const Arrays outputs = function(arguments);
  Jvp result{.outputs = strip(outputs, level)};
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Traced* traced = outputs[i].traced();
    const bool is_followed = traced != nullptr && traced->level == level;
    result.tangents.push_back(is_followed ? traced->tangent : zeros_like(outputs[i]));
  }
  return result;
}

std::function<ValueAndGrad(const Arrays&)> value_and_grad(Function function,
                                                          std::vector<int> argnums) {
  return [function = std::move(function), argnums = std::move(argnums)](const Arrays& arguments) {
    Wanted followed(arguments.size(), false);
    for (const int argnum : argnums) {
      if (argnum < 0 || argnum >= static_cast<int>(arguments.size())) {
        throw Error(ErrorCode::invalid,
                    fmt::format("value_and_grad: argnum {}: expected the index of one of {} "
                                "arguments",
                                argnum, arguments.size()));
      }
      followed[static_cast<size_t>(argnum)] = true;
    }
    Vjp result = vjp_from_outputs(function, arguments, followed, [](const Arrays& outputs) {
      Arrays cotangents(outputs.size());
      if (outputs.empty()) {
        throw Error(ErrorCode::invalid, "value_and_grad: no output: expected one element");
      }
      if (outputs.front().num_elements() != 1) {
        throw_shapes("value_and_grad", {outputs.front()}, "a first output of one element");
      }
      check_float("value_and_grad", outputs.front());
      cotangents.front() = add_scalar(zeros_like(outputs.front()), 1.0f);
      return cotangents;
    });
    ValueAndGrad found{.value = result.outputs.front(),
                       .others = Arrays(result.outputs.begin() + 1, result.outputs.end())};
    for (const int argnum : argnums) {
      size_t position = 0;  // among the gradients, which are in the order of the arguments
      for (int i = 0; i < argnum; ++i) position += followed[static_cast<size_t>(i)] ? 1 : 0;
      found.gradients.push_back(result.gradients[position]);
    }
    return found;
  };
}

Function checkpoint(Function function) {
  return [function = std::move(function)](const Arrays& inputs) {
    return call_checkpointed(function, inputs);
  };
}

}  // namespace paceline::autodiff
