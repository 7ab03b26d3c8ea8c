#include "engine/engine_core.h"

#include <numeric>

#include "base/device_lost.h"
#include "base/error.h"
#include "base/state_chunk.h"

namespace paceline {

namespace {

// Rows that attend in both directions share no prefix, and decode no run.
EngineLimits with_directions(EngineLimits limits) {
  if (limits.bidirectional) {
    limits.prefix_cache = false;
    limits.max_run_steps = 1;
  }
  return limits;
}

}  // namespace

EngineCore::EngineCore(const Engine& engine, Runner& runner, Memory& memory, KvCache& cache,
                       const EngineLimits& limits, TokenTexts token_texts, Drafter* drafter)
    : engine_(engine),
      runner_(runner),
      cache_(cache),
      limits_(with_directions(limits)),
      intake_(runner, cache, limits_),
      requests_(intake_, cache, limits_, log_),
      speculation_(limits_.speculation, drafter, runner.vocab_size(), cache.has_states()),
      run_(runner, limits_.max_run_steps),
      planner_(requests_, cache, limits_, run_, speculation_, log_),
      batch_(cache),
      draws_(runner, memory, limits_, log_),
      commit_({.runner = runner,
               .cache = cache,
               .limits = limits_,
               .requests = requests_,
               .speculation = speculation_,
               .draws = draws_,
               .log = log_},
              std::move(token_texts)) {}

bool EngineCore::step() {
  log_.began = Clock::now();
  requests_.take_in();  // new requests and cancellations
  for (const EngineInspection& look : requests_.inspections()) look(engine_);
  if (run_.is_active()) {
    go_on_running();  // a later step of a plan has the slices of the first one
  } else {
    give_way();         // deferred sequences leave
    planner_.decide();  // changes nothing, and proposes tokens for decoding sequences
    apply();            // preempts, admits, reserves
    build_batch();      // flat arrays
  }
  compute();  // runs the model and commits the results
  publish();  // sends the events
  return !requests_.running().empty() || !requests_.waiting().empty();
}

// They are the last running ones.
void EngineCore::give_way() {
  int64_t num_leaving = planner_.num_leaving();
  for (size_t i = requests_.running().size(); i > 0 && num_leaving > 0; --i, --num_leaving) {
    if (!requests_.running()[i - 1]->is_deferred) break;
    requests_.preempt(i - 1);
    ++log_.counters.deferred_preemptions;
  }
  requests_.compact();
}

// The only place that acquires blocks; finished sequences release theirs as they end, and drafts
// and runs what was not taken behind the commit.
void EngineCore::apply() {
  const StepPlan& plan = planner_.plan();
  cache_.clear_copies();
  if (plan.starved && !requests_.drop_oldest_hold()) fail_starved_sequence();
  for (const PlannedAdmission& admission : plan.admitted) {
    requests_.admit(planner_.view().waiting_index(admission.waiting), admission.prefix_length);
  }
  requests_.compact();
  for (const int32_t index : plan.preempted) requests_.preempt(static_cast<size_t>(index));
  for (const PlannedSlice& slice : plan.slices) {
    Sequence& sequence = sequence_of(slice);
    const int64_t more =
        std::max<int64_t>(slice.num_drafted, std::min(plan.num_steps, sequence.num_run_steps) - 1);
    const auto missing = cache_.reserve(sequence.blocks, sequence.num_wanted() + more,
                                        slice.first + slice.count - slice.num_drafted + more);
    PL_CHECK(!missing.has_value(), "the plan counted blocks that aren't there");
  }
  if (cache_.has_states() && limits_.prefix_cache) save_states();
}

// Fails one sequence so that the others go on. submit() refuses requests that could never fit, so
// this is a last resort.
void EngineCore::fail_starved_sequence() {
  const auto list = requests_.running().empty() ? requests_.waiting() : requests_.running();
  if (list.empty()) return;
  requests_.fail(*list.front(), {ErrorCode::exhausted,
                                 "key/value cache: no block is left for it; a larger "
                                 "--kv-cache-memory would fit it"});
}

// With the blocks that the plan left: every kSavedTokens, and where the prompt ends, as what
// follows a prompt differs most.
void EngineCore::save_states() {
  constexpr int64_t kSavedTokens = 512;
  const int64_t unit = std::lcm(cache_.block_size(), kStateChunk);
  const int64_t apart = std::lcm(unit, kSavedTokens);
  for (const PlannedSlice& slice : planner_.plan().slices) {
    Sequence& sequence = sequence_of(slice);
    if (sequence.request().prefix.write != PrefixUse::Write::keep) continue;
    const int64_t end = slice.first + slice.count - slice.num_drafted;
    const int64_t of_prompt = sequence.prompt_length / unit * unit;
    for (int64_t p = slice.first / unit * unit + unit; p <= end; p += unit) {
      if (p % apart == 0 || p == of_prompt) cache_.save_state(sequence.blocks, p);
    }
  }
}

// In the plan's order, but for rows of one adapter, which become neighbours: their products are
// one.
void EngineCore::build_batch() {
  batch_.clear();
  for (int32_t adapter = 0; adapter < planner_.view().num_adapters(); ++adapter) {
    for (const PlannedSlice& slice : planner_.plan().slices) {
      Sequence& sequence = sequence_of(slice);
      if (sequence.adapter == adapter) batch_.add(sequence, slice.count, slice.num_drafted);
    }
  }
  batch_.finish();
  draws_.begin(batch_);
}

// Where something has changed, the step of a run is its last one.
void EngineCore::go_on_running() {
  batch_.advance();
  const int64_t count = std::ssize(batch_.slices()), num_slots = batch_.batch().num_rows();
  const bool has_gap = count < num_slots;
  // A step costs what all slots cost, but for a few: where half are empty, the next run has fewer.
  constexpr int64_t kFewSlots = 8;
  const bool is_sparse = num_slots > kFewSlots && 2 * count <= num_slots;
  if (requests_.has_news() || is_sparse || (has_gap && !requests_.waiting().empty()) ||
      planner_.could_admit()) {
    run_.end_soon();
  }
}

// An error of the runner or of the commit ends the sequences of this step and no others.
void EngineCore::compute() {
  for (const StepSlice& slice : batch_.slices()) {
    log_.record.num_rows += slice.count;
    log_.record.slices.push_back({.id = slice.sequence->arrival_id,
                                  .first = slice.sequence->num_computed,
                                  .count = slice.count});
  }
  // No sequence is left, of a run either, or none has blocks yet.
  if (batch_.slices().empty()) return run_.stop();
  try {
    forward();
    commit_.commit(batch_);
  } catch (const DeviceLost& error) {
    lost_device_ = error.what();
    fail_batch(error.code(), error.what());
  } catch (const Error& error) {
    fail_batch(error.code(), error.what());
  } catch (const std::exception& error) {
    fail_batch(ErrorCode::internal, error.what());
  }
  draws_.finish();
  batch_.forget_finished();
  if (batch_.slices().empty()) run_.stop();
  if (planner_.plan().num_steps > 1 && !run_.is_active()) end_run();
}

void EngineCore::forward() {
  const auto begin = Clock::now();
  const int64_t num_steps = planner_.plan().num_steps;
  if (num_steps > 1) {
    if (!run_.is_active()) run_.start(batch_, num_steps);
    draws_.take(batch_, run_.next());
    ++log_.counters.run_steps;
  } else {
    runner_.run(batch_.batch());
    draws_.draw_rows(batch_);
  }
  log_.record.forward_us += microseconds_of(Clock::now() - begin);
}

void EngineCore::fail_batch(ErrorCode code, const std::string& message) {
  for (const StepSlice& slice : batch_.slices()) {
    if (!slice.sequence->finished) requests_.fail(*slice.sequence, {code, message});
  }
}

// Gives back the slots of steps that were not taken.
void EngineCore::end_run() {
  for (const StepSlice& slice : batch_.slices()) slice.sequence->give_back_slots(cache_);
  run_.stop();
}

void EngineCore::publish() {
  requests_.publish();
  if (planner_.plan().empty()) return;
  StepRecord& record = log_.record;
  record.step = log_.counters.steps++;
  const Clock::duration total = Clock::now() - log_.began;
  record.at_us = microseconds_of(log_.began - created_);
  record.total_us = microseconds_of(total);
  planner_.record_step(seconds_of(total) - 1e-6 * static_cast<double>(record.draft_us));
  log_.counters.speculation = speculation_.counters();
  log_.counters.constraints.forced_tokens += record.num_forced;
  if (log_.observer != nullptr) show_record();
  record.clear();
}

// Sequences that ended between steps are in the next step's record.
void EngineCore::show_record() {
  StepRecord& record = log_.record;
  record.num_waiting = std::ssize(requests_.waiting());
  for (int g = 0; g < cache_.num_groups(); ++g) {
    record.free_blocks.push_back(cache_.pool(g).num_free());
    record.cached_blocks.push_back(cache_.pool(g).num_cached());
  }
  for (const auto& sequence : requests_.running()) {
    const auto table = sequence->blocks.table(0);
    record.blocks.push_back(
        {.id = sequence->arrival_id, .count = std::ssize(table) - sequence->blocks.first_kept(0)});
  }
  log_.observer->on_step(record);
}

void EngineCore::end_all() {
  run_.stop();
  requests_.end_all();
}

}  // namespace paceline
