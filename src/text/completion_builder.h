// CompletionBuilder makes one choice's completion of the events that the engine sends.
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

// What of a request its completion needs.
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

  // The text that may be shown now, valid until the next call; often empty.
  std::string_view add(TokenEvent& event);

  bool finished() const { return finished_; }
  // When it is finished: what went wrong, if anything did.
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
