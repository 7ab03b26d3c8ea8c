#include "backends/child_sequence.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "backends/child_request.h"

namespace paceline {
namespace {

TokenId token_of(const JsonCursor& value, int64_t vocab_size) {
  return static_cast<TokenId>(
      value.integer({.min = 0, .max = static_cast<double>(vocab_size - 1)}));
}

float number_of(const JsonCursor& value) { return static_cast<float>(value.number()); }

// [[id, log-probability], ...]
std::vector<TokenLogprob> top_of(const JsonCursor& list, int64_t vocab_size) {
  std::vector<TokenLogprob> top;
  for (const JsonCursor& pair : list.items()) {
    top.push_back({.id = token_of(pair.item(0), vocab_size), .logprob = number_of(pair.item(1))});
  }
  return top;
}

std::vector<float> numbers_of(const JsonCursor& answer, std::string_view key, size_t count) {
  const JsonCursor list = answer.at(key);
  if (list.num_items() != count) list.mismatch(fmt::format("{} numbers", count));
  std::vector<float> numbers;
  for (const JsonCursor& value : list.items()) numbers.push_back(number_of(value));
  return numbers;
}

bool contains(const std::vector<TokenId>& ids, TokenId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

std::string_view shown_bytes(const TokenTexts& texts, TokenId id, SpecialTokens specials) {
  if (!texts) return {};
  const TokenText text = texts(id);
  return text.is_special && specials == SpecialTokens::hidden ? std::string_view() : text.bytes;
}

ChildSequence::ChildSequence(std::shared_ptr<const ChildRequest> of, int32_t which)
    : shared_(std::move(of)), choice_(which), matcher_(shared_->stops) {
  stats_.prompt_tokens = std::ssize(request().prompt);
}

bool ChildSequence::wants_scores() const { return choice_ == 0 && asks_for_scores(request()); }

bool ChildSequence::is_served_before(const ChildSequence& other) const {
  const auto rank = [](const ChildSequence& one) {
    return one.is_deferred ? std::numeric_limits<int32_t>::max() : one.request().priority;
  };
  if (rank(*this) != rank(other)) return rank(*this) < rank(other);
  return arrival_id() < other.arrival_id();
}

void ChildSequence::start() {
  started_ = Clock::now();
  stats_.queue_seconds = seconds_of(*started_ - shared_->submitted);
}

void ChildSequence::take_scores(const JsonCursor& answer, int64_t vocab_size) {
  const GenerateRequest& asked = request();
  prompt_ = std::make_unique<PromptOutputs>();
  if (asked.score_from) {
    const auto first = static_cast<size_t>(std::max<int64_t>(*asked.score_from, 1));
    const size_t count = asked.prompt.size() - std::min(asked.prompt.size(), first);
    const bool has_top = asked.sampling.num_top_logprobs > 0;
    if (*asked.score_from == 0) {
      prompt_->scored.push_back({.id = asked.prompt[0], .logprob = {}, .top_logprobs = {}});
    }
    const std::vector<float> logprobs = numbers_of(answer, "logprobs", count);
    for (size_t i = 0; i < count; ++i) {
      prompt_->scored.push_back({.id = asked.prompt[first + i],
                                 .logprob = logprobs[i],
                                 .top_logprobs = has_top
                                                     ? top_of(answer.at("top").item(i), vocab_size)
                                                     : std::vector<TokenLogprob>()});
    }
  }
  if (!asked.columns.empty()) {
    prompt_->column_logits = numbers_of(answer, "columns", asked.columns.size());
  }
  if (asked.want_row) prompt_->row = numbers_of(answer, "row", static_cast<size_t>(vocab_size));
  stats_.prefill_seconds = seconds_of(Clock::now() - *started_);
  if (asked.max_tokens == 0) end({.reason = FinishReason::length});
}

void ChildSequence::take_token(const JsonCursor& message, int64_t vocab_size,
                               const TokenTexts& texts) {
  const GenerateRequest& asked = request();
  const TokenId id = token_of(message.at("token"), vocab_size);
  TokenEvent event;
  event.token = TokenLogprob{.id = id};
  if (asked.want_logprobs) {
    event.token->logprob = number_of(message.at("logprob"));
    event.top_logprobs = top_of(message.at("top"), vocab_size);
    stats_.logprob += double{event.token->logprob};
  }
  const auto now = Clock::now();
  if (stats_.output_tokens++ == 0) {
    first_token_ = now;
    stats_.prefill_seconds = seconds_of(now - *started_);
    stats_.time_to_first_token_seconds = seconds_of(now - shared_->submitted);
  }
  stats_.decode_seconds = seconds_of(now - *first_token_);
  if (!asked.ignore_eos && contains(asked.eos_tokens, id)) {
    return end({.reason = FinishReason::stop});
  }
  if (contains(asked.stop_token_ids, id)) {
    return end({.reason = FinishReason::stop, .stop_token = id});
  }
  accept(std::move(event), shown_bytes(texts, id, asked.specials));
}

void ChildSequence::accept(TokenEvent event, std::string_view bytes) {
  const GenerateRequest& asked = request();
  const auto match = matcher_.push(bytes);
  text_bytes_ += std::ssize(bytes);
  if (match) {
    const std::string& stop = asked.stop_strings[static_cast<size_t>(match->string_index)];
    event.releasable_bytes = match->begin + (asked.includes_stop ? std::ssize(stop) : 0);
    return finish_with(std::move(event),
                       {.reason = FinishReason::stop, .stop_string = match->string_index}, {});
  }
  if (stats_.output_tokens >= asked.max_tokens) {
    event.releasable_bytes = text_bytes_;
    return finish_with(std::move(event), {.reason = FinishReason::length}, {});
  }
  event.releasable_bytes = matcher_.releasable_bytes();
  post(std::move(event));
}

void ChildSequence::end(const Finish& finish, std::optional<ErrorInfo> error) {
  if (has_ended_) return;
  TokenEvent event;
  event.releasable_bytes = text_bytes_;
  finish_with(std::move(event), finish, std::move(error));
}

void ChildSequence::finish_with(TokenEvent&& event, const Finish& finish,
                                std::optional<ErrorInfo> error) {
  has_ended_ = true;
  event.ending = std::make_unique<Ending>(
      Ending{.finish = finish, .error = std::move(error), .stats = stats_});
  post(std::move(event));
}

void ChildSequence::post(TokenEvent&& event) {
  event.request = shared_->id;
  event.tag = shared_->tag;
  event.choice = choice_;
  if (prompt_) event.prompt = std::move(prompt_);
  shared_->channel->push(std::move(event));
}

}  // namespace paceline
