#include "text/completion_builder.h"

#include <fmt/format.h>

#include <iterator>

#include "engine/engine.h"
#include "grammar/matcher.h"
#include "text/describe.h"

namespace paceline {

CompletionShape completion_shape(const GenerateRequest& request) {
  return {.want_logprobs = request.want_logprobs,
          .want_prompt_logprobs = request.score_from.has_value(),
          .stop_strings = request.stop_strings,
          .seed = request.sampling.seed,
          .specials = request.specials,
          .warnings = request.constraint == nullptr ? std::vector<std::string>()
                                                    : request.constraint->warnings()};
}

CompletionShape chat_completion_shape(const GenerateRequest& request,
                                      const std::optional<TurnShape>& turn) {
  CompletionShape shape = completion_shape(request);
  shape.turn = turn;
  if (turn && turn->make_call_id != nullptr) {
    shape.make_call_id = turn->make_call_id;
  } else {
    shape.make_call_id = [next = 0]() mutable { return fmt::format("call_{}", next++); };
  }
  return shape;
}

CompletionBuilder::CompletionBuilder(const TextModel& model, CompletionShape shape)
    : model_(model), shape_(std::move(shape)) {
  completion_.seed = shape_.seed;
  completion_.warnings = shape_.warnings;
  if (model.tokenizer != nullptr) completion_.text.emplace();
  if (!shape_.turn) return;
  completion_.turn.emplace().must_call = shape_.turn->must_call;
  reader_.emplace(shape_.turn->format, shape_.turn->tools,
                  TurnReaderOptions{.begins_in_reasoning = shape_.turn->begins_in_reasoning,
                                    .reads_calls = shape_.turn->reads_calls,
                                    .must_call = shape_.turn->must_call,
                                    .make_id = shape_.make_call_id});
}

std::string_view CompletionBuilder::add(TokenEvent& event) {
  completion_.usage.cached_tokens = event.cached_tokens;
  if (event.token) {
    const TokenId id = event.token->id;
    completion_.token_ids.push_back(id);
    if (shape_.want_logprobs) {
      completion_.logprobs.push_back({.id = id,
                                      .token = token_string(model_, id),
                                      .logprob = event.token->logprob,
                                      .top = describe_top(model_, event.top_logprobs)});
    }
    text_.push(model_.engine.token_bytes(id, shape_.specials));
  }
  if (event.prompt && shape_.want_prompt_logprobs) {
    completion_.prompt_logprobs = describe(model_, event.prompt->scored);
  }
  piece_ = event.ending ? text_.finish(event.releasable_bytes) : text_.take(event.releasable_bytes);
  if (completion_.text) *completion_.text += piece_;
  if (reader_) read_turn(event.ending != nullptr);
  if (event.ending) finish(*event.ending);
  return piece_;
}

void CompletionBuilder::read_turn(bool is_final) {
  turn_events_ = reader_->push(piece_);
  if (is_final) {
    std::vector<TurnEvent> last = reader_->finish();
    turn_events_.insert(turn_events_.end(), std::make_move_iterator(last.begin()),
                        std::make_move_iterator(last.end()));
  }
  TurnParts& turn = *completion_.turn;
  for (const TurnEvent& event : turn_events_) {
    switch (event.kind) {
      case TurnEvent::Kind::reasoning:
        turn.reasoning += event.text;
        reasoning_tokens_ = std::ssize(completion_.token_ids);
        break;
      case TurnEvent::Kind::content:
        turn.content += event.text;
        break;
      case TurnEvent::Kind::call_begun:
        turn.tool_calls.push_back({.id = event.id, .name = event.name, .arguments = {}});
        break;
      case TurnEvent::Kind::arguments:
        turn.tool_calls.at(event.call_index).arguments += event.text;
        break;
      case TurnEvent::Kind::call_ended:
        break;
    }
  }
}

void CompletionBuilder::finish(const Ending& ending) {
  finished_ = true;
  stats_ = ending.stats;
  completion_.finish_reason = finish_reason_name(ending.finish.reason);
  if (ending.finish.stop_token) completion_.stop_reason = *ending.finish.stop_token;
  if (ending.finish.stop_string) {
    completion_.stop_reason = shape_.stop_strings[static_cast<size_t>(*ending.finish.stop_string)];
  }
  completion_.logprob = stats_.logprob;
  completion_.usage = {.prompt_tokens = stats_.prompt_tokens,
                       .completion_tokens = stats_.output_tokens,
                       .cached_tokens = stats_.cached_tokens,
                       .drafted_tokens = stats_.drafted_tokens,
                       .accepted_tokens = stats_.accepted_tokens,
                       .reasoning_tokens = reasoning_tokens_};
  completion_.timings = {.queue_seconds = stats_.queue_seconds,
                         .prompt_seconds = stats_.prefill_seconds,
                         .output_seconds = stats_.decode_seconds,
                         .time_to_first_token_seconds = stats_.time_to_first_token_seconds};
  error_ = ending.error;
}

}  // namespace paceline
