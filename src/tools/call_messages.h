// CallMessages renders messages with tool calls in the shape that a chat template asks for.
#pragma once

#include <optional>
#include <vector>

#include "tools/call_sample.h"
#include "tools/template_probe.h"
#include "tools/turn_format.h"

namespace paceline {

class CallMessages {
 public:
  // The probe must outlive it.
  explicit CallMessages(TemplateProbe& probe) : probe_(probe) {}

  // Finds the shape, and returns a turn with one call. Error unsupported when the template writes
  // the call in no shape.
  CallSample choose_shape();
  const CallMessageShape& shape() const { return shape_; }
  // Whether the template writes calls only where their results follow.
  bool are_answered() const { return are_answered_; }
  ProbeContext context() const { return {.is_answered = are_answered_}; }

  // A turn of calls without content.
  ProbeTurn turn(std::vector<ProbeCall> calls) const;
  // Nothing when the template fails, or doesn't write all of them.
  std::optional<CallSample> sample(const std::vector<ProbeCall>& calls);

 private:
  [[noreturn]] void explain_missing_call();

  TemplateProbe& probe_;
  CallMessageShape shape_;
  bool are_answered_ = false;
};

}  // namespace paceline
