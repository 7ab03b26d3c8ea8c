// CompletionBuilder builds one choice's completion from the engine's events.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/event.h"
#include "paceline/results.h"
#include "text/text_model.h"
#include "text/text_stream.h"

namespace paceline {

// The fields of a request that its completion needs.
struct CompletionShape {
  bool want_logprobs = false;
  bool want_prompt_logprobs = false;
  std::vector<std::string> stop_strings;
  uint64_t seed = 0;
  SpecialTokens specials = SpecialTokens::hidden;
};

CompletionShape completion_shape(const GenerateRequest& request);

class CompletionBuilder {
 public:
  // `model` must outlive it.
  CompletionBuilder(const TextModel& model, CompletionShape shape);

  // Text that can be emitted now, valid until the next call; often empty.
  std::string_view add(TokenEvent& event);

  bool finished() const { return finished_; }
  // Once finished: the error, if there was one.
  const std::optional<ErrorInfo>& error() const { return error_; }
  const Completion& completion() const { return completion_; }
  Completion take() { return std::move(completion_); }
  const GenerationStats& stats() const { return stats_; }

 private:
  void finish(const Ending& ending);

  const TextModel& model_;
  CompletionShape shape_;
  TextStream text_;
  std::string piece_;
  Completion completion_;
  GenerationStats stats_;
  std::optional<ErrorInfo> error_;
  bool finished_ = false;
};

}  // namespace paceline
