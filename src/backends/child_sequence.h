// ChildSequence is one choice of a request that a child computes: its tokens become events.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/json_cursor.h"
#include "base/time_source.h"
#include "engine/channel.h"
#include "engine/engine.h"
#include "engine/event.h"
#include "engine/request.h"
#include "engine/stop_matcher.h"

namespace paceline {

// What all choices of a request share.
struct ChildRequest {
  ChildRequest(RequestId request_id, int64_t submitters_tag, GenerateRequest&& asked,
               std::shared_ptr<Channel> answers)
      : id(request_id),
        tag(submitters_tag),
        request(std::move(asked)),
        stops(request.stop_strings),
        channel(std::move(answers)) {}

  RequestId id;
  int64_t tag;
  GenerateRequest request;
  StopAutomaton stops;
  std::shared_ptr<Channel> channel;
  Clock::time_point submitted = Clock::now();
};

class ChildSequence {
 public:
  ChildSequence(std::shared_ptr<const ChildRequest> of, int32_t which);

  const GenerateRequest& request() const { return shared_->request; }
  const ChildRequest& shared() const { return *shared_; }
  int32_t choice() const { return choice_; }
  int64_t arrival_id() const { return shared_->id + choice_; }
  // Whether the child is to compute results of the prompt first.
  bool wants_scores() const;
  bool is_served_before(const ChildSequence& other) const;
  bool has_started() const { return started_.has_value(); }
  bool has_ended() const { return has_ended_; }
  const GenerationStats& stats() const { return stats_; }

  // In this order, each by the engine's thread.
  void start();
  // Reads the answer to score_message(). Throws Error corrupt where it isn't one.
  void take_scores(const JsonCursor& answer, int64_t vocab_size);
  // Reads a drawn token; `texts` has its text. Throws as take_scores().
  void take_token(const JsonCursor& message, int64_t vocab_size, const TokenTexts& texts);
  // Ends the output, unless it has ended.
  void end(const Finish& finish, std::optional<ErrorInfo> error = {});

  bool is_deferred = false;

 private:
  void accept(TokenEvent event, std::string_view bytes);
  void finish_with(TokenEvent&& event, const Finish& finish, std::optional<ErrorInfo> error);
  void post(TokenEvent&& event);

  std::shared_ptr<const ChildRequest> shared_;
  int32_t choice_;
  StopMatcher matcher_;
  int64_t text_bytes_ = 0;
  std::unique_ptr<PromptOutputs> prompt_;
  GenerationStats stats_;
  std::optional<Clock::time_point> started_, first_token_;
  bool has_ended_ = false;
};

// The text that a token adds.
std::string_view shown_bytes(const TokenTexts& texts, TokenId id, SpecialTokens specials);

}  // namespace paceline
