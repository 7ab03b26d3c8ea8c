// EngineCore at its edges: submissions, cancellations, and the end of sequences.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "engine/context_error.h"
#include "engine/engine_core.h"
#include "runner/loaded_adapter.h"

namespace paceline {
namespace {

// Refuses a request that runs out of blocks even alone in the cache.
void check_fits(const GenerateRequest& request, const KvCache& cache) {
  const int64_t capacity = cache.capacity_tokens(1);
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  // The last token drawn needs no place.
  const int64_t drawn = request.max_tokens > 0 ? 1 : 0;
  if (prompt + request.max_tokens - drawn <= capacity) return;
  throw context_error(ErrorCode::exhausted,
                      {.field = request.prompt_name,
                       .capacity = capacity + drawn,
                       .prompt_tokens = prompt,
                       .output_tokens = request.max_tokens,
                       .limit = "--kv-cache-memory-bytes, the key/value cache"});
}

// The tokens that the request may come to, whatever memory there is.
int64_t longest_sequence(const GenerateRequest& request, const EngineLimits& limits) {
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  const int64_t room = std::max<int64_t>(limits.max_model_len - prompt, 0);
  return prompt + std::clamp<int64_t>(request.max_tokens, 0, room);
}

}  // namespace

std::optional<RequestId> EngineCore::submit(GenerateRequest request,
                                            std::shared_ptr<Channel> channel, int64_t tag) {
  const int64_t longest = longest_sequence(request, limits_);
  check(request);
  if (request.adapter != nullptr) request.prefix.scope.adapter = request.adapter->digest;
  request.prefix.scope.stretched = runner_.stretched_length(longest);
  if (!queue_.try_add(request.n, static_cast<int64_t>(request.prompt.size()))) return std::nullopt;
  const RequestId id = next_id_.fetch_add(request.n, std::memory_order_relaxed);
  auto state =
      std::make_shared<const RequestState>(id, tag, std::move(request), std::move(channel));
  auto sequence = std::make_unique<Sequence>(std::move(state), 0, cache_);
  sequence->extend_hashes(cache_.prefixes(), cache_.block_size(), sequence->num_tokens());
  mailbox_.submit(std::move(sequence));
  return id;
}

void EngineCore::check(GenerateRequest& request) const {
  check_request(request, limits_, vocab_size());
  check_fits(request, cache_);
}

void EngineCore::take_in() {
  mailbox_.take(mail_);
  for (SequencePtr& sequence : mail_.submitted) {
    sequence->waiting_since = counters_.steps;
    if (observer_ != nullptr) observer_->on_submitted(*sequence, counters_.steps);
    queue_.remove(sequence->num_queued, sequence->prompt_length);  // enqueue counts it anew
    enqueue(std::move(sequence));
  }
  for (const RequestId id : mail_.cancelled) cancel_request(id);
  for (const RequestId id : mail_.released) {
    std::erase_if(holds_, [id](const auto& hold) { return hold.first == id; });
  }
  end_cancelled();
  for (const Deferral& deferral : mail_.deferrals) change(deferral);
}

// In the order (priority, arrival id): a preempted sequence comes before new ones of its class.
void EngineCore::enqueue(SequencePtr sequence) {
  const auto place = std::upper_bound(waiting_.begin(), waiting_.end(), sequence, is_served_before);
  sequence->num_queued = 1 + sequence->num_unforked;
  queue_.add(sequence->num_queued, sequence->prompt_length);
  waiting_.insert(place, std::move(sequence));
}

void EngineCore::cancel_request(RequestId id) {
  bool found = false;
  for (auto* queue : {&running_, &waiting_}) {
    for (const SequencePtr& sequence : *queue) {
      if (sequence->shared->id != id || sequence->finished) continue;
      found = true;
      retire(*sequence, {.reason = FinishReason::cancelled, .stop_token = {}, .stop_string = {}});
    }
  }
  if (observer_ != nullptr) observer_->on_cancelled(id, counters_.steps);
  if (!found) ++counters_.late_cancellations;
}

void EngineCore::change(Deferral deferral) {
  for (auto* queue : {&running_, &waiting_}) {
    for (const SequencePtr& sequence : *queue) {
      if (sequence->shared->id == deferral.id) sequence->is_deferred = deferral.begins;
    }
    std::sort(queue->begin(), queue->end(), is_served_before);
  }
}

// Ends sequences with a requested stop token and those that need no row computed; removes them and
// those cancelled by id.
void EngineCore::end_cancelled() {
  for (auto* queue : {&running_, &waiting_}) {
    for (const SequencePtr& sequence : *queue) {
      if (sequence->finished) continue;
      if (sequence->request().cancelled.stop_requested()) {
        if (observer_ != nullptr) observer_->on_cancelled(sequence->shared->id, counters_.steps);
        retire(*sequence, {.reason = FinishReason::cancelled, .stop_token = {}, .stop_string = {}});
      } else if (sequence->num_wanted() == 0) {
        retire(*sequence, {.reason = FinishReason::length, .stop_token = {}, .stop_string = {}});
      }
    }
  }
  remove_finished();
}

void EngineCore::end_all() {
  // A step that threw may have left sequences in these lists.
  for (auto* moving : {&admitted_, &forked_}) {
    for (SequencePtr& sequence : *moving) running_.push_back(std::move(sequence));
    moving->clear();
  }
  std::erase(running_, nullptr);
  std::erase(waiting_, nullptr);
  take_in();
  run_.stop();
  for (auto* queue : {&running_, &waiting_}) {
    for (const SequencePtr& sequence : *queue) {
      retire(*sequence, {.reason = FinishReason::cancelled, .stop_token = {}, .stop_string = {}});
    }
  }
  remove_finished();
  for (const auto& channel : touched_) channel->notify();
  touched_.clear();
  holds_.clear();
}

void EngineCore::retire(Sequence& sequence, const Finish& finish) {
  TokenEvent event;
  event.releasable_bytes = sequence.text_bytes;
  end(sequence, std::move(event), finish);
}

void EngineCore::fail(Sequence& sequence, ErrorInfo error) {
  TokenEvent event;
  event.releasable_bytes = sequence.text_bytes;
  event.ending = std::make_unique<Ending>();
  event.ending->error = std::move(error);
  end(sequence, std::move(event),
      {.reason = FinishReason::error, .stop_token = {}, .stop_string = {}});
}

// Every sequence ends here: releases or holds its blocks and posts its last event.
void EngineCore::end(Sequence& sequence, TokenEvent&& event, const Finish& finish) {
  PL_CHECK(!sequence.finished, "a sequence ends once");
  sequence.finished = true;
  const bool is_whole =
      finish.reason == FinishReason::length || finish.reason == FinishReason::stop;
  sequence.draft_state.reset();
  if (sequence.request().prefix.hold && is_whole) {
    holds_.emplace_back(sequence.shared->id, std::move(sequence.blocks));
  } else {
    if (is_whole) keep_state(sequence);
    sequence.blocks.clear();
  }
  for (int32_t k = 0; k < sequence.num_unforked; ++k) {  // the choices that never began
    TokenEvent of_choice;
    of_choice.choice = k + 1;
    of_choice.ending = std::make_unique<Ending>();
    if (event.ending) *of_choice.ending = *event.ending;
    of_choice.ending->finish = finish;
    of_choice.ending->stats = sequence.stats;
    post(sequence, std::move(of_choice));
  }
  sequence.num_unforked = 0;
  if (!event.ending) event.ending = std::make_unique<Ending>();
  event.ending->finish = finish;
  event.ending->stats = sequence.stats;
  event.choice = sequence.choice;
  if (sequence.prompt_outputs && !event.prompt) event.prompt = std::move(sequence.prompt_outputs);
  record_.finished.push_back({.id = sequence.arrival_id, .reason = finish.reason});
  post(sequence, std::move(event));
}

void EngineCore::post(const Sequence& sequence, TokenEvent&& event) {
  event.request = sequence.shared->id;
  event.tag = sequence.shared->tag;
  event.cached_tokens = sequence.stats.cached_tokens;
  const auto& channel = sequence.shared->channel;
  channel->push(std::move(event));
  if (touched_.empty() || touched_.back() != channel) touched_.push_back(channel);
}

}  // namespace paceline
