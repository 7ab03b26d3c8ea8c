#include "tools/call_messages.h"

#include "paceline/error.h"

namespace paceline {

using MessageContent = CallMessageShape::Content;

ProbeTurn CallMessages::turn(std::vector<ProbeCall> calls) const {
  ProbeTurn turn{.calls = std::move(calls), .arguments_are_text = shape_.arguments_are_text};
  if (shape_.no_content == MessageContent::empty) turn.content = Json(std::string());
  if (shape_.no_content == MessageContent::null) turn.content = Json();
  return turn;
}

std::optional<CallSample> CallMessages::sample(const std::vector<ProbeCall>& calls) {
  std::optional<std::string> text = probe_.turn(turn(calls), context());
  return text ? read_sample(*std::move(text), calls) : std::nullopt;
}

// Of the shapes in which the call is written, the one with the shortest turn: others add an empty
// message or the word "None".
CallSample CallMessages::choose_shape() {
  for (const bool are_answered : {false, true}) {
    are_answered_ = are_answered;
    for (const bool are_text : {false, true}) {
      std::optional<CallSample> best;
      CallMessageShape best_shape;
      for (const auto content :
           {MessageContent::empty, MessageContent::null, MessageContent::absent}) {
        shape_ = {content, are_text};
        std::optional<CallSample> found = sample({probe_.call(0)});
        if (!found || (best && found->text.size() >= best->text.size())) continue;
        best = std::move(found);
        best_shape = shape_;
      }
      if (!best) continue;
      shape_ = best_shape;
      return *std::move(best);
    }
  }
  explain_missing_call();
}

void CallMessages::explain_missing_call() {
  const ProbeCall call = probe_.call(0);
  bool is_written = false;
  bool has_name = false;
  bool has_arguments = false;
  for (const auto content : {MessageContent::empty, MessageContent::null, MessageContent::absent}) {
    shape_ = {content, false};
    const std::optional<std::string> text = probe_.turn(turn({call}));
    if (!text) continue;
    is_written = true;
    has_name |= text->find(call.name) != std::string::npos;
    has_arguments |= find_arguments(*text, call.arguments).has_value();
  }
  if (!is_written) {
    throw Error(ErrorCode::unsupported,
                "the chat template fails on messages with tool calls: " + probe_.fault());
  }
  if (!has_name && !has_arguments) {
    throw Error(ErrorCode::unsupported, "the chat template writes no tool calls");
  }
  not_derivable(has_name ? "where a call's arguments stand" : "where a call's name stands");
}

}  // namespace paceline
