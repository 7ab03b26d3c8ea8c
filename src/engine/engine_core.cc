#include "engine/engine_core.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace paceline {

namespace {

int64_t most_queued_tokens(const EngineLimits& limits, const KvCache& cache) {
  constexpr int64_t kPools = 4, kUnbounded = std::numeric_limits<int64_t>::max();
  if (limits.max_queued_tokens > 0) return limits.max_queued_tokens;
  const int64_t capacity = cache.capacity_tokens(1);  // of nothing but windows: unbounded
  return capacity > kUnbounded / kPools ? kUnbounded : kPools * capacity;
}

}  // namespace

EngineCore::EngineCore(const Engine& engine, Runner& runner, Backend& backend, Memory& memory,
                       KvCache& cache, EngineLimits limits, TokenTexts token_texts)
    : engine_(engine),
      runner_(runner),
      cache_(cache),
      limits_(limits),
      token_texts_(std::move(token_texts)),
      sampler_(backend, memory, runner.vocab_size()),
      queue_(limits.max_queued, most_queued_tokens(limits, cache)),
      view_(cache),
      builder_(cache),
      budget_(limits.max_step_slowdown, limits.max_batched_tokens) {
  plan_limits_ = {.block_size = cache.block_size(),
                  .max_sequences = std::min(limits.max_num_seqs, limits.max_batched_tokens),
                  .max_rows = limits.max_batched_tokens,
                  .max_slice = limits.max_chunk > 0 ? limits.max_chunk : limits.max_batched_tokens};
}

EngineCore::~EngineCore() { end_all(); }

bool EngineCore::step() {
  record_.begin = EngineClock::now();
  take_in();  // new requests and cancellations
  for (const EngineInspection& look : mail_.inspections) look(engine_);
  decide();       // changes nothing
  apply();        // the only place where blocks change hands
  build_batch();  // flat arrays
  compute();      // the only place that runs the model; commits what it found
  publish();      // the events go to their readers
  return !running_.empty() || !waiting_.empty();
}

// What goes wrong here ends the sequences of this step and no others.
void EngineCore::compute() {
  if (plan_.empty()) return;  // nobody is here, or blocks must first be given up
  try {
    const auto begin = EngineClock::now();
    runner_.run(builder_.batch());
    record_.forward_seconds += std::chrono::duration<double>(EngineClock::now() - begin).count();
    commit();
  } catch (const Error& error) {
    fail_batch(error.code(), error.what());
  } catch (const std::exception& error) {
    fail_batch(ErrorCode::internal, error.what());
  }
}

void EngineCore::fail_batch(ErrorCode code, const std::string& message) {
  for (const BatchSlice& slice : builder_.slices()) {
    if (!slice.sequence->finished) fail(*slice.sequence, code, message);
  }
}

void EngineCore::decide() {
  const auto begin = EngineClock::now();
  const int64_t room = plan_limits_.max_sequences - static_cast<int64_t>(running_.size());
  const SchedView& view =
      view_.build(running_, waiting_, room, counters_.steps, plan_limits_, limits_.prefix_cache);
  const int64_t rows = budget_.rows_beside(view_.num_decodes());
  plan_limits_.max_rows_beside_decode = rows;
  plan_limits_.min_prefill_beside_decode = rows > view_.num_decodes() ? 1 : 0;
  plan_step(view, plan_limits_, scratch_, plan_);
  record_.plan_seconds = std::chrono::duration<double>(EngineClock::now() - begin).count();
}

// The only place where blocks change hands, but for what a finished sequence leaves.
void EngineCore::apply() {
  admitted_.clear();
  if (plan_.starved && !give_up_a_hold()) fail_what_cannot_fit();
  const size_t num_running = running_.size();
  for (const PlannedAdmission& admission : plan_.admitted) admit(admission);
  std::erase(waiting_, nullptr);
  cache_.clear_copies();
  for (const int32_t index : plan_.preempted) preempt(static_cast<size_t>(index));
  builder_.clear();
  for (const PlannedSlice& slice : plan_.slices) {
    const auto index = static_cast<size_t>(slice.sequence);
    Sequence& sequence = index < num_running ? *running_[index] : *admitted_[index - num_running];
    const auto missing =
        cache_.reserve(sequence.blocks, sequence.num_wanted(), slice.first + slice.count);
    PL_CHECK(!missing.has_value(), "the plan counted blocks that aren't there");
  }
}

// Its blocks go back, what was published stays findable; it keeps its arrival id and its draws.
void EngineCore::preempt(size_t index) {
  Sequence& sequence = *running_[index];
  sequence.blocks.clear();
  sequence.num_computed = 0;
  sequence.waiting_since = counters_.steps;
  ++sequence.stats.preemptions;
  ++counters_.preemptions;
  record_.preempted.push_back(sequence.arrival_id);
  enqueue(std::move(running_[index]));
}

void EngineCore::admit(const PlannedAdmission& admission) {
  SequencePtr& waiting = waiting_[view_.waiting_index(admission.waiting)];
  Sequence& sequence = *waiting;
  cache_.take_prefix(sequence.blocks, sequence.hashes, sequence.tokens, admission.prefix_length);
  sequence.num_computed = admission.prefix_length;
  if (!sequence.has_started) {
    sequence.has_started = true;
    sequence.started = record_.begin;
    sequence.stats.cached_tokens = admission.prefix_length;
  }
  record_.admitted.push_back({.id = sequence.arrival_id, .count = admission.prefix_length});
  admitted_.push_back(std::move(waiting));
  queue_.remove(sequence.num_queued, sequence.prompt_length);
}

void EngineCore::build_batch() {
  const size_t num_running = running_.size();
  for (const PlannedSlice& slice : plan_.slices) {
    const auto index = static_cast<size_t>(slice.sequence);
    Sequence& sequence = index < num_running ? *running_[index] : *admitted_[index - num_running];
    builder_.add(sequence, slice.count);
    record_.slices.push_back(
        {.id = sequence.arrival_id, .first = slice.first, .count = slice.count});
  }
  builder_.finish();
  record_.num_rows = builder_.batch().num_rows();
}

// The oldest prefix that somebody asked to keep, when blocks are short for everybody else.
bool EngineCore::give_up_a_hold() {
  if (holds_.empty()) return false;
  holds_.erase(holds_.begin());
  ++counters_.dropped_holds;
  return true;
}

// Submission refuses what could never fit, so this is for the unforeseen: one fails, the rest go
// on.
void EngineCore::fail_what_cannot_fit() {
  auto& queue = running_.empty() ? waiting_ : running_;
  if (queue.empty() || queue.front() == nullptr) return;
  Sequence& sequence = *queue.front();
  fail(sequence, ErrorCode::exhausted,
       "key/value cache: no block is left for it; a larger --kv-cache-memory would fit it");
}

void EngineCore::publish() {
  for (auto& sequence : admitted_) running_.push_back(std::move(sequence));
  for (auto& sequence : forked_) running_.push_back(std::move(sequence));
  const bool joined = !admitted_.empty() || !forked_.empty();
  admitted_.clear();
  forked_.clear();
  std::erase(running_, nullptr);
  remove_finished();
  if (joined) {
    std::sort(running_.begin(), running_.end(), [](const SequencePtr& a, const SequencePtr& b) {
      const int32_t first = a->request().priority, second = b->request().priority;
      return first != second ? first < second : a->arrival_id < b->arrival_id;
    });
  }
  for (const auto& channel : touched_) channel->notify();
  touched_.clear();
  num_running_.store(static_cast<int64_t>(running_.size()), std::memory_order_relaxed);
  num_waiting_.store(static_cast<int64_t>(waiting_.size()), std::memory_order_relaxed);
  if (plan_.empty()) return;
  record_step();
  ++counters_.steps;
}

void EngineCore::remove_finished() {
  const auto gone = [](const SequencePtr& sequence) { return sequence->finished; };
  std::erase_if(running_, gone);
  for (const auto& sequence : waiting_) {
    if (gone(sequence)) queue_.remove(sequence->num_queued, sequence->prompt_length);
  }
  std::erase_if(waiting_, gone);
}

void EngineCore::record_step() {
  record_.step = counters_.steps;
  record_.total_seconds = std::chrono::duration<double>(EngineClock::now() - record_.begin).count();
  budget_.record(record_.num_rows, view_.num_decodes(), record_.total_seconds);
  if (observer_ != nullptr) show_record();
  record_.clear();
}

// What ended without a step of its own stands in the next one's record.
void EngineCore::show_record() {
  record_.num_waiting = static_cast<int64_t>(waiting_.size());
  for (int g = 0; g < cache_.num_groups(); ++g) {
    record_.free_blocks.push_back(cache_.pool(g).num_free());
    record_.cached_blocks.push_back(cache_.pool(g).num_cached());
  }
  for (const auto& sequence : running_) {
    const auto table = sequence->blocks.table(0);
    record_.blocks.push_back(
        {.id = sequence->arrival_id,
         .count = static_cast<int64_t>(table.size()) - sequence->blocks.first_kept(0)});
  }
  observer_->on_step(record_);
}

std::string_view EngineCore::token_bytes(TokenId id, SpecialTokens specials) const {
  if (!token_texts_) return {};
  const TokenText text = token_texts_(id);
  return text.is_special && specials == SpecialTokens::hidden ? std::string_view() : text.bytes;
}

void EngineCore::check_integrity() const {
  std::vector<const SequenceBlocks*> live;
  for (const auto& sequence : running_) live.push_back(&sequence->blocks);
  for (const auto& sequence : waiting_) live.push_back(&sequence->blocks);
  for (const auto& [id, blocks] : holds_) live.push_back(&blocks);
  cache_.check_integrity(live);
}

}  // namespace paceline
