#include "engine/request_list.h"

#include <algorithm>

#include "base/error.h"
#include "base/state_chunk.h"

namespace paceline {
namespace {

bool is_served_before(const std::unique_ptr<Sequence>& a, const std::unique_ptr<Sequence>& b) {
  return a->is_served_before(*b);
}

}  // namespace

RequestList::RequestList(RequestIntake& intake, StateCache& cache, const EngineLimits& limits,
                         StepLog& log)
    : intake_(intake),
      cache_(cache),
      limits_(limits),
      log_(log),
      max_running_(std::min(limits.max_num_seqs, limits.max_batched_tokens)) {}

void RequestList::take_in() {
  const int64_t step = log_.counters.steps;
  mail_ = intake_.take();
  for (auto& sequence : mail_.submitted) {
    sequence->waiting_since = step;
    if (log_.observer != nullptr) log_.observer->on_submitted(*sequence, step);
    // enqueue counts it anew.
    intake_.queue().remove(sequence->num_queued, sequence->prompt_length);
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
void RequestList::enqueue(std::unique_ptr<Sequence> sequence) {
  const auto place = std::upper_bound(waiting_.begin(), waiting_.end(), sequence, is_served_before);
  sequence->num_queued = 1 + sequence->num_unforked;
  intake_.queue().add(sequence->num_queued, sequence->prompt_length);
  waiting_.insert(place, std::move(sequence));
}

void RequestList::cancel_request(RequestId id) {
  bool found = false;
  for (auto* queue : {&running_, &waiting_}) {
    for (const auto& sequence : *queue) {
      if (sequence->shared->id != id || sequence->finished) continue;
      found = true;
      retire(*sequence, {.reason = FinishReason::cancelled});
    }
  }
  if (log_.observer != nullptr) log_.observer->on_cancelled(id, log_.counters.steps);
  if (!found) ++log_.counters.late_cancellations;
}

void RequestList::change(Deferral deferral) {
  for (auto* queue : {&running_, &waiting_}) {
    for (const auto& sequence : *queue) {
      if (sequence->shared->id == deferral.id) sequence->is_deferred = deferral.begins;
    }
    std::sort(queue->begin(), queue->end(), is_served_before);
  }
}

// Ends sequences that their callers cancelled (GenerateRequest::cancelled), and those that need no
// row computed. Then ended sequences, and those cancelled by id, leave the lists.
void RequestList::end_cancelled() {
  for (auto* queue : {&running_, &waiting_}) {
    for (const auto& sequence : *queue) {
      if (sequence->finished) continue;
      if (sequence->request().cancelled.stop_requested()) {
        if (log_.observer != nullptr) {
          log_.observer->on_cancelled(sequence->shared->id, log_.counters.steps);
        }
        retire(*sequence, {.reason = FinishReason::cancelled});
      } else if (sequence->num_wanted() == 0) {
        retire(*sequence, {.reason = FinishReason::length});
      }
    }
  }
  take_ended();
}

void RequestList::admit(size_t index, int64_t prefix_length) {
  Sequence& sequence = *waiting_[index];
  cache_.take_prefix(sequence.blocks, sequence.hashes, sequence.tokens, prefix_length);
  sequence.num_computed = prefix_length;
  if (!sequence.has_started) {
    sequence.has_started = true;
    sequence.started = log_.began;
    sequence.stats.cached_tokens = prefix_length;
  }
  log_.record.admitted.push_back({.id = sequence.arrival_id, .cached_tokens = prefix_length});
  intake_.queue().remove(sequence.num_queued, sequence.prompt_length);
  running_.push_back(std::move(waiting_[index]));
}

void RequestList::preempt(size_t index) {
  Sequence& sequence = *running_[index];
  keep_state(sequence);
  sequence.blocks.clear();
  sequence.draft_state.reset();
  sequence.num_computed = 0;
  sequence.pooled.clear();
  sequence.waiting_since = log_.counters.steps;
  ++sequence.stats.preemptions;
  ++log_.counters.preemptions;
  log_.record.preempted.push_back(sequence.arrival_id);
  enqueue(std::move(running_[index]));
}

void RequestList::compact() {
  std::erase(running_, nullptr);
  std::erase(waiting_, nullptr);
}

void RequestList::fork_choices(Sequence& sequence) {
  const int32_t num_choices = std::exchange(sequence.num_unforked, 0);
  for (int32_t choice = 1; choice <= num_choices; ++choice) {
    auto forked = std::make_unique<Sequence>(sequence.shared, choice, cache_);
    forked->hashes = sequence.hashes;
    forked->started = sequence.started;
    forked->has_started = true;
    forked->is_deferred = sequence.is_deferred;
    if (room() <= 0) {
      forked->waiting_since = log_.counters.steps;
      enqueue(std::move(forked));
      continue;
    }
    forked->blocks = cache_.fork(sequence.blocks);
    forked->num_computed = sequence.num_computed;
    forked->stats.cached_tokens = sequence.num_computed;
    running_.push_back(std::move(forked));
  }
}

bool RequestList::drop_oldest_hold() {
  if (holds_.empty()) return false;
  holds_.erase(holds_.begin());
  ++log_.counters.dropped_holds;
  return true;
}

// The state of a sequence that leaves is that at the start of its open chunk, unless a run has
// begun the chunk's last row.
void RequestList::keep_state(Sequence& sequence) {
  if (!cache_.has_states() || !limits_.prefix_cache) return;
  const PrefixUse& prefix = sequence.request().prefix;
  const bool keeps = prefix.write == PrefixUse::Write::keep;
  if (!keeps && !prefix.hold) return;
  const int64_t num_begun = sequence.num_computed + (sequence.is_ahead ? 1 : 0);
  const int64_t chunk = sequence.num_computed / kStateChunk;
  if (num_begun / kStateChunk != chunk) return;
  cache_.publish_end(sequence.blocks, chunk * kStateChunk, keeps);
}

void RequestList::fail(Sequence& sequence, ErrorInfo error) {
  TokenEvent event;
  event.ending = std::make_unique<Ending>();
  event.ending->error = std::move(error);
  end(sequence, std::move(event), {.reason = FinishReason::error});
}

void RequestList::end(Sequence& sequence, TokenEvent&& event, const Finish& finish) {
  PL_CHECK(!sequence.finished, "a sequence ends once");
  sequence.finished = true;
  const bool is_whole =
      finish.reason == FinishReason::length || finish.reason == FinishReason::stop;
  sequence.draft_state.reset();
  // After an error the state may be ahead of the tokens, or hold a NaN.
  if (finish.reason != FinishReason::error) keep_state(sequence);
  if (sequence.request().prefix.hold && is_whole) {
    cache_.release_open_rows(sequence.blocks);
    holds_.emplace_back(sequence.shared->id, std::move(sequence.blocks));
  } else {
    sequence.blocks.clear();
  }
  if (!event.ending) event.ending = std::make_unique<Ending>();
  event.ending->finish = finish;
  event.ending->stats = sequence.stats;
  for (int32_t k = 0; k < sequence.num_unforked; ++k) {  // the choices that never began
    TokenEvent of_choice;
    of_choice.choice = k + 1;
    of_choice.ending = std::make_unique<Ending>(*event.ending);
    post(sequence, std::move(of_choice));
  }
  sequence.num_unforked = 0;
  event.choice = sequence.choice;
  if (!event.token) event.releasable_bytes = sequence.text_bytes;
  if (sequence.prompt_outputs && !event.prompt) event.prompt = std::move(sequence.prompt_outputs);
  log_.record.finished.push_back({.id = sequence.arrival_id, .reason = finish.reason});
  post(sequence, std::move(event));
}

void RequestList::post(const Sequence& sequence, TokenEvent&& event) {
  event.request = sequence.shared->id;
  event.tag = sequence.shared->tag;
  event.cached_tokens = sequence.stats.cached_tokens;
  const auto& channel = sequence.shared->channel;
  channel->push(std::move(event));
  if (touched_.empty() || touched_.back() != channel) touched_.push_back(channel);
}

void RequestList::take_ended() {
  for (auto* queue : {&running_, &waiting_}) {
    for (auto& sequence : *queue) {
      if (sequence == nullptr || !sequence->finished) continue;
      if (queue == &waiting_) {
        intake_.queue().remove(sequence->num_queued, sequence->prompt_length);
      }
      ended_.push_back(std::move(sequence));
    }
  }
  compact();
}

void RequestList::publish() {
  take_ended();
  ended_.clear();
  if (!std::is_sorted(running_.begin(), running_.end(), is_served_before)) {
    std::sort(running_.begin(), running_.end(), is_served_before);
  }
  for (const auto& channel : touched_) channel->notify();
  touched_.clear();
  num_running_.store(std::ssize(running_), std::memory_order_relaxed);
  num_waiting_.store(std::ssize(waiting_), std::memory_order_relaxed);
}

void RequestList::end_all() {
  compact();  // a step that threw may have left empty places
  take_in();
  for (auto* queue : {&running_, &waiting_}) {
    for (const auto& sequence : *queue) retire(*sequence, {.reason = FinishReason::cancelled});
  }
  publish();
  holds_.clear();
}

void RequestList::check_integrity() const {
  std::vector<const SequenceBlocks*> live;
  for (const auto& sequence : running_) live.push_back(&sequence->blocks);
  for (const auto& sequence : waiting_) live.push_back(&sequence->blocks);
  for (const auto& [id, blocks] : holds_) live.push_back(&blocks);
  cache_.check_integrity(live);
}

}  // namespace paceline
