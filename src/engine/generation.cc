#include "engine/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "engine/engine.h"

namespace paceline {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool contains(std::span<const TokenId> ids, TokenId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

Generation::Generation(Engine& engine, GenerateRequest request)
    : engine_(engine),
      request_(std::move(request)),
      stop_automaton_(request_.stop_strings),
      stop_matcher_(stop_automaton_),
      sequence_(engine.cache_, request_.prompt) {
  history_.add_prompt(request_.prompt);
  stats_.prompt_tokens = static_cast<int64_t>(request_.prompt.size());
}

TokenEvent Generation::finish_with(FinishReason reason, std::optional<TokenId> stop_token) {
  finished_ = true;
  sequence_.blocks = SequenceBlocks();
  return {.token = {},
          .top_logprobs = {},
          .releasable_bytes = text_bytes_,
          .finish = Finish{.reason = reason, .stop_token = stop_token, .stop_string = {}}};
}

void Generation::prefill() {
  prefilled_ = true;
  if (!request_.want_prompt_logprobs) {
    while (sequence_.num_uncomputed() > 0 && !request_.cancelled.stop_requested()) {
      engine_.advance(sequence_, Outputs::last);
    }
    return;
  }
  prompt_logprobs_.push_back({.id = request_.prompt[0], .logprob = {}, .top_logprobs = {}});
  int64_t count = 0;
  while (sequence_.num_uncomputed() > 0 && !request_.cancelled.stop_requested()) {
    const int64_t first_position = sequence_.num_computed;
    count = engine_.advance(sequence_, Outputs::all);
    engine_.score_outputs(sequence_, first_position, count, request_.sampling.num_top_logprobs,
                          prompt_logprobs_);
  }
}

TokenEvent Generation::next() {
  PL_CHECK(!finished_, "next() after the end of a generation");
  const auto start = Clock::now();
  finished_ = true;  // whatever throws below ends it
  const bool is_first = !prefilled_;
  if (is_first) {
    prefill();
    stats_.prefill_seconds = seconds_since(start);
  } else {
    engine_.advance(sequence_, Outputs::last);
  }
  if (request_.cancelled.stop_requested()) return finish_with(FinishReason::cancelled);
  if (request_.max_tokens == 0) return finish_with(FinishReason::length);

  // After a prefill that scored the prompt every row is an output; the last one is drawn from.
  const auto logits = engine_.logits_row(engine_.batch_.num_outputs() - 1);
  Sample sample = engine_.sampler_.draw(logits, request_.sampling, history_, sequence_.num_tokens(),
                                        request_.want_logprobs);
  if (sample.status != SampleStatus::ok) {
    throw Error(ErrorCode::numerical, fmt::format("position {}: {}", sequence_.num_tokens(),
                                                  sample.status == SampleStatus::nan_logits
                                                      ? "the logits hold a NaN"
                                                      : "nothing is left to draw from"));
  }
  finished_ = false;
  ++stats_.output_tokens;
  TokenEvent event;
  if (!request_.ignore_eos && contains(request_.eos_tokens, sample.id)) {
    event = finish_with(FinishReason::stop);
  } else if (contains(request_.stop_token_ids, sample.id)) {
    event = finish_with(FinishReason::stop, sample.id);
  } else {
    event.token = TokenLogprob{.id = sample.id, .logprob = sample.logprob};
    event.top_logprobs = std::move(sample.top_logprobs);
    accept(sample.id, event);
  }
  if (is_first) {
    stats_.time_to_first_token_seconds = seconds_since(start);
  } else {
    stats_.decode_seconds += seconds_since(start);
  }
  return event;
}

void Generation::accept(TokenId id, TokenEvent& event) {
  sequence_.tokens.push_back(id);
  history_.add_output(id);
  const std::string_view bytes = engine_.token_bytes_[static_cast<size_t>(id)];
  const auto match = stop_matcher_.push(bytes);
  text_bytes_ += static_cast<int64_t>(bytes.size());
  if (match) {
    event.finish = finish_with(FinishReason::stop).finish;
    event.finish->stop_string = match->string_index;
    event.releasable_bytes = match->begin;
    return;
  }
  event.releasable_bytes = stop_matcher_.releasable_bytes();
  if (stats_.output_tokens >= request_.max_tokens) {
    event.finish = finish_with(FinishReason::length).finish;
    event.releasable_bytes = text_bytes_;
  }
}

}  // namespace paceline
