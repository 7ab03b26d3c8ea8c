#include "engine/engine_core.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/device_lost.h"
#include "base/error.h"
#include "base/state_chunk.h"
#include "base/time_source.h"

namespace paceline {

namespace {

int64_t most_queued_tokens(const EngineLimits& limits, const KvCache& cache) {
  constexpr int64_t kPools = 4, kUnbounded = std::numeric_limits<int64_t>::max();
  if (limits.max_queued_tokens > 0) return limits.max_queued_tokens;
  const int64_t capacity = cache.capacity_tokens(1);  // unbounded when all groups are windowed
  return capacity > kUnbounded / kPools ? kUnbounded : kPools * capacity;
}

}  // namespace

EngineCore::EngineCore(const Engine& engine, Runner& runner, Memory& memory, KvCache& cache,
                       EngineLimits limits, TokenTexts token_texts, Drafter* drafter)
    : engine_(engine),
      runner_(runner),
      cache_(cache),
      limits_(limits),
      token_texts_(std::move(token_texts)),
      sampler_(memory, runner.vocab_size()),
      queue_(limits.max_queued, most_queued_tokens(limits, cache)),
      view_(cache),
      batch_(cache),
      budget_({.slowdown = limits.max_step_slowdown, .free_seconds = limits.free_step_seconds},
              limits.max_batched_tokens),
      speculation_(limits.speculation, drafter, runner.vocab_size(), cache.has_states()),
      run_(runner, limits.bidirectional ? 1 : limits.max_run_steps) {
  if (limits.bidirectional) limits_.prefix_cache = false;
  plan_limits_ = {.block_size = cache.block_size(),
                  .max_sequences = std::min(limits.max_num_seqs, limits.max_batched_tokens),
                  .max_adapters = std::max<int64_t>(1, limits.max_adapters),
                  .max_rows = limits.max_batched_tokens,
                  .max_slice = limits.max_chunk > 0 ? limits.max_chunk : limits.max_batched_tokens};
}

EngineCore::~EngineCore() { end_all(); }

bool EngineCore::step() {
  step_began_ = Clock::now();
  take_in();  // new requests and cancellations
  for (const EngineInspection& look : mail_.inspections) look(engine_);
  if (run_.is_active()) {
    go_on_running();  // a step of an earlier plan
  } else {
    give_way();     // deferred sequences leave
    decide();       // changes nothing
    draft();        // proposes tokens for decoding sequences
    apply();        // preempts, admits, reserves
    build_batch();  // flat arrays
    compute();      // runs the model and commits the results
  }
  publish();  // sends the events
  return !running_.empty() || !waiting_.empty();
}

// An error of the runner or of the commit ends the sequences of this step and no others.
void EngineCore::compute() {
  if (plan_.empty()) return;  // no sequence is left, or none has blocks yet
  if (plan_.num_steps > 1) {
    take_run_step(false);
    return;
  }
  try {
    const auto begin = Clock::now();
    runner_.run(batch_.batch());
    record_.forward_us += microseconds_of(Clock::now() - begin);
    commit();
  } catch (const DeviceLost& error) {
    lost_device_ = error.what();
    fail_batch(error.code(), error.what());
  } catch (const Error& error) {
    fail_batch(error.code(), error.what());
  } catch (const std::exception& error) {
    fail_batch(ErrorCode::internal, error.what());
  }
  constraint_worker_.finish_all();
  counters_.constraints.masked_steps = constraint_worker_.num_found();
  counters_.constraints.mask_seconds = constraint_worker_.seconds();
}

// A later step of a run. Where something has changed it is the last one, as the runner has begun it
// already.
void EngineCore::go_on_running() {
  const bool has_news = !mail_.submitted.empty() || !mail_.cancelled.empty() ||
                        !mail_.released.empty() || !mail_.deferrals.empty();
  const int64_t count = run_.num_sequences();
  const int64_t num_slots = std::ssize(run_.sequences());
  const bool has_gap = count < num_slots;
  // A step costs what all slots cost, but for a few: where half are empty, the next run has fewer.
  constexpr int64_t kFewSlots = 8;
  const bool is_sparse = num_slots > kFewSlots && 2 * count <= num_slots;
  if (count == 0) {  // all were cancelled, so the step in flight has no reader
    end_run();
    return;
  }
  num_decodes_ = count;
  record_.num_rows = count;
  for (const Sequence* sequence : run_.sequences()) {
    if (sequence == nullptr) continue;
    record_.slices.push_back(
        {.id = sequence->arrival_id, .first = sequence->num_computed, .count = 1});
  }
  take_run_step(has_news || is_sparse || (has_gap && !waiting_.empty()) || could_admit());
}

// Whether a plan would admit a waiting sequence, had the run ended: windows have released blocks
// since it began.
bool EngineCore::could_admit() {
  if (waiting_.empty()) return false;
  SchedLimits limits = plan_limits_;
  limits.max_steps = 1;
  const int64_t room = plan_limits_.max_sequences - static_cast<int64_t>(running_.size());
  view_.build(running_, waiting_, room, counters_.steps, limits, limits_);
  plan_step(view_.without_reserves(), limits, scratch_, plan_without_run_);
  return !plan_without_run_.admitted.empty();
}

// Commits a step of a run, the first one of a plan or a later one, and ends the run behind its
// last.
void EngineCore::take_run_step(bool ends) {
  const auto fail_all = [this](ErrorCode code, const std::string& message) {
    for (Sequence* sequence : run_.sequences()) {
      if (sequence != nullptr && !sequence->finished) fail(*sequence, {code, message});
    }
    run_.forget_finished();
  };
  try {
    const auto begin = Clock::now();
    if (!run_.is_active()) run_.start(batch_, plan_.num_steps);
    const std::span<const DecodedToken> tokens = run_.next(ends);
    record_.forward_us += microseconds_of(Clock::now() - begin);
    ++counters_.run_steps;
    commit_run(tokens);
  } catch (const DeviceLost& error) {
    lost_device_ = error.what();
    fail_all(error.code(), error.what());
  } catch (const Error& error) {
    fail_all(error.code(), error.what());
  } catch (const std::exception& error) {
    fail_all(ErrorCode::internal, error.what());
  }
  run_.forget_finished();
  if (run_.has_ended() || run_.num_sequences() == 0) end_run();
}

// Gives back the slots of steps that were not taken.
void EngineCore::end_run() {
  for (Sequence* sequence : run_.sequences()) {
    if (sequence == nullptr) continue;
    cache_.truncate(sequence->blocks, sequence->num_computed);
    cache_.release_outside_window(sequence->blocks, sequence->num_computed);
  }
  run_.stop();
}

void EngineCore::fail_batch(ErrorCode code, const std::string& message) {
  for (const StepSlice& slice : batch_.slices()) {
    if (!slice.sequence->finished) fail(*slice.sequence, {code, message});
  }
}

// One leaves for each sequence that found no place, for itself or its adapter, or too few blocks in
// the step before.
void EngineCore::give_way() {
  if (running_.empty() || !running_.back()->is_deferred) return;
  const bool has_places =
      std::ssize(running_) < plan_limits_.max_sequences && !plan_.lacks_adapters;
  if (has_places && !plan_.lacks_blocks) return;
  auto num_leaving = std::count_if(waiting_.begin(), waiting_.end(), [this](const auto& one) {
    return !one->is_deferred && one->waiting_since < counters_.steps;
  });
  // They are the last ones.
  for (size_t i = running_.size(); i > 0 && num_leaving > 0; --i, --num_leaving) {
    if (!running_[i - 1]->is_deferred) break;
    preempt(i - 1);
    ++counters_.deferred_preemptions;
  }
  std::erase(running_, nullptr);
}

void EngineCore::decide() {
  const auto begin = Clock::now();
  speculation_.wish(running_);
  for (const auto& sequence : running_) {
    sequence->num_run_steps = speculation_.may_draft(*sequence) ? 0 : run_.steps_of(*sequence);
  }
  // Those that wait for a deferred sequence's place get it in the next step.
  const bool gives_way = !waiting_.empty() && !running_.empty() && running_.back()->is_deferred;
  plan_limits_.max_steps = gives_way ? 1 : run_.max_steps(std::ssize(running_));
  const int64_t room = plan_limits_.max_sequences - static_cast<int64_t>(running_.size());
  const SchedView& view =
      view_.build(running_, waiting_, room, counters_.steps, plan_limits_, limits_);
  num_decodes_ = view_.num_decodes();
  const int64_t rows = budget_.rows_beside(num_decodes_);
  plan_limits_.max_rows_beside_decode = rows;
  plan_limits_.min_prefill_beside_decode = rows > num_decodes_ ? 1 : 0;
  plan_step(view, plan_limits_, scratch_, plan_);
  record_.plan_us = microseconds_of(Clock::now() - begin);
}

void EngineCore::draft() {
  const auto begin = Clock::now();
  if (!speculation_.propose(running_, plan_, record_.draft_failure)) return;
  record_.draft_us = microseconds_of(Clock::now() - begin);
}

// The only place that acquires blocks; finished sequences release theirs in end(), and drafts what
// was not accepted in settle_drafts().
void EngineCore::apply() {
  admitted_.clear();
  cache_.clear_copies();
  if (plan_.starved && !drop_oldest_hold()) fail_starved_sequence();
  const size_t num_running = running_.size();
  for (const PlannedAdmission& admission : plan_.admitted) admit(admission);
  std::erase(waiting_, nullptr);
  for (const int32_t index : plan_.preempted) preempt(static_cast<size_t>(index));
  batch_.clear();
  for (const PlannedSlice& slice : plan_.slices) {
    const auto index = static_cast<size_t>(slice.sequence);
    Sequence& sequence = index < num_running ? *running_[index] : *admitted_[index - num_running];
    const int64_t more =
        std::max<int64_t>(slice.num_drafted, std::min(plan_.num_steps, sequence.num_run_steps) - 1);
    const auto missing = cache_.reserve(sequence.blocks, sequence.num_wanted() + more,
                                        slice.first + slice.count - slice.num_drafted + more);
    PL_CHECK(!missing.has_value(), "the plan counted blocks that aren't there");
  }
  if (cache_.has_states() && limits_.prefix_cache) save_states();
}

// With the blocks that the plan left: every kSavedTokens, and where the prompt ends, as what
// follows a prompt differs most.
void EngineCore::save_states() {
  constexpr int64_t kSavedTokens = 512;
  const int64_t unit = std::lcm(cache_.block_size(), kStateChunk);
  const int64_t apart = std::lcm(unit, kSavedTokens);
  const size_t num_running = running_.size();
  for (const PlannedSlice& slice : plan_.slices) {
    const auto index = static_cast<size_t>(slice.sequence);
    Sequence& sequence = index < num_running ? *running_[index] : *admitted_[index - num_running];
    if (sequence.request().prefix.write != PrefixUse::Write::keep) continue;
    const int64_t end = slice.first + slice.count - slice.num_drafted;
    const int64_t of_prompt = sequence.prompt_length / unit * unit;
    for (int64_t p = slice.first / unit * unit + unit; p <= end; p += unit) {
      if (p % apart == 0 || p == of_prompt) cache_.save_state(sequence.blocks, p);
    }
  }
}

// The state of a sequence that leaves is that at the start of its open chunk.
void EngineCore::keep_state(Sequence& sequence) {
  if (!cache_.has_states() || !limits_.prefix_cache) return;
  if (sequence.request().prefix.write != PrefixUse::Write::keep) return;
  cache_.publish_end(sequence.blocks, sequence.num_computed / kStateChunk * kStateChunk);
}

// Releases its blocks (published ones stay findable); it keeps its arrival id and tokens.
void EngineCore::preempt(size_t index) {
  Sequence& sequence = *running_[index];
  keep_state(sequence);
  sequence.blocks.clear();
  sequence.draft_state.reset();
  sequence.num_computed = 0;
  sequence.pooled.clear();
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
    sequence.started = step_began_;
    sequence.stats.cached_tokens = admission.prefix_length;
  }
  record_.admitted.push_back({.id = sequence.arrival_id, .cached_tokens = admission.prefix_length});
  admitted_.push_back(std::move(waiting));
  queue_.remove(sequence.num_queued, sequence.prompt_length);
}

// The plan's order, but for rows of one adapter, which become neighbours: their products are one.
void EngineCore::order_slices() {
  slice_order_.resize(plan_.slices.size());
  std::iota(slice_order_.begin(), slice_order_.end(), 0);
  if (!view_.has_adapters()) return;
  const auto adapter = [&](int32_t slice) {
    const auto index = static_cast<size_t>(plan_.slices[static_cast<size_t>(slice)].sequence);
    return view_.adapter_number(index < running_.size() ? *running_[index]
                                                        : *admitted_[index - running_.size()]);
  };
  std::sort(slice_order_.begin(), slice_order_.end(), [&](int32_t a, int32_t b) {
    return std::pair(adapter(a), a) < std::pair(adapter(b), b);
  });
}

void EngineCore::build_batch() {
  const size_t num_running = running_.size();
  order_slices();
  for (const int32_t in_plan : slice_order_) {
    const PlannedSlice& slice = plan_.slices[static_cast<size_t>(in_plan)];
    const auto index = static_cast<size_t>(slice.sequence);
    Sequence& sequence = index < num_running ? *running_[index] : *admitted_[index - num_running];
    const int64_t end = slice.first + slice.count - slice.num_drafted;
    if (sequence.constraint != nullptr && end == sequence.num_tokens()) {
      constraint_worker_.begin(*sequence.constraint, sequence.draft.tokens);
    }
    batch_.add(sequence, slice.count, slice.num_drafted);
    record_.slices.push_back(
        {.id = sequence.arrival_id, .first = slice.first, .count = slice.count});
  }
  batch_.finish();
  record_.num_rows = batch_.batch().num_rows();
}

// Releases the oldest held prefix when blocks run out; false when there is none.
bool EngineCore::drop_oldest_hold() {
  if (holds_.empty()) return false;
  holds_.erase(holds_.begin());
  ++counters_.dropped_holds;
  return true;
}

// Fails one sequence so that the others go on. submit() refuses requests that could never fit, so
// this is a last resort.
void EngineCore::fail_starved_sequence() {
  auto& queue = running_.empty() ? waiting_ : running_;
  if (queue.empty() || queue.front() == nullptr) return;
  Sequence& sequence = *queue.front();
  fail(sequence,
       {ErrorCode::exhausted,
        "key/value cache: no block is left for it; a larger --kv-cache-memory would fit it"});
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
    std::sort(running_.begin(), running_.end(), is_served_before);
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
  run_.forget_finished();
  const auto gone = [](const SequencePtr& sequence) { return sequence->finished; };
  std::erase_if(running_, gone);
  for (const auto& sequence : waiting_) {
    if (gone(sequence)) queue_.remove(sequence->num_queued, sequence->prompt_length);
  }
  std::erase_if(waiting_, gone);
}

void EngineCore::record_step() {
  record_.step = counters_.steps;
  const Clock::duration total = Clock::now() - step_began_;
  record_.at_us = microseconds_of(step_began_ - created_);
  record_.total_us = microseconds_of(total);
  const double seconds =
      std::chrono::duration<double>(total).count() - 1e-6 * static_cast<double>(record_.draft_us);
  budget_.record(record_.num_rows, num_decodes_, seconds);
  speculation_.record_step(record_, num_decodes_, seconds);
  counters_.speculation = speculation_.counters();
  counters_.constraints.forced_tokens += record_.num_forced;
  if (observer_ != nullptr) show_record();
  record_.clear();
}

// Sequences that ended between steps are in the next step's record.
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
