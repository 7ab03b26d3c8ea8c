// CompletionBuilder builds one choice's completion from the engine's events.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/event.h"
#include "paceline/results.h"
#include "text/chat_turn.h"
#include "text/text_model.h"
#include "text/text_stream.h"
#include "tools/turn_reader.h"

namespace paceline {

// The fields of a request that its completion needs.
struct CompletionShape {
  bool want_logprobs = false;
  bool want_prompt_logprobs = false;
  std::vector<std::string> stop_strings;
  uint64_t seed = 0;
  SpecialTokens specials = SpecialTokens::hidden;
  std::optional<TurnShape> turn = {};
  std::function<std::string()> make_call_id = {};  // of calls for which the model writes no id
  std::vector<std::string> warnings = {};
};

CompletionShape completion_shape(const GenerateRequest& request);
// Of a chat's turn; calls for which the model writes no id are call_0, call_1, ... unless the turn
// says otherwise: the same request has the same answer.
CompletionShape chat_completion_shape(const GenerateRequest& request,
                                      const std::optional<TurnShape>& turn);

class CompletionBuilder {
 public:
  // `model` must outlive it.
  CompletionBuilder(const TextModel& model, CompletionShape shape);

  // Text that can be emitted now, valid until the next call; often empty.
  std::string_view add(TokenEvent& event);

  // What the same text says of the turn, where it is taken apart; valid until the next call.
  std::span<const TurnEvent> turn_events() const { return turn_events_; }

  bool finished() const { return finished_; }
  // Once finished: the error, if there was one.
  const std::optional<ErrorInfo>& error() const { return error_; }
  const Completion& completion() const { return completion_; }
  Completion take() { return std::move(completion_); }
  const GenerationStats& stats() const { return stats_; }

 private:
  void finish(const Ending& ending);
  void read_turn(bool is_final);

  const TextModel& model_;
  CompletionShape shape_;
  TextStream text_;
  std::string piece_;
  std::optional<TurnReader> reader_;
  std::vector<TurnEvent> turn_events_;
  int64_t reasoning_tokens_ = 0;
  Completion completion_;
  GenerationStats stats_;
  std::optional<ErrorInfo> error_;
  bool finished_ = false;
};

}  // namespace paceline
