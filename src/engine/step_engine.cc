#include "engine/step_engine.h"

#include "base/device_lost.h"
#include "base/error.h"
#include "engine/decode_run.h"
#include "engine/engine_snapshot.h"
#include "engine/request_list.h"
#include "engine/step_batch.h"
#include "engine/step_commit.h"
#include "engine/step_draws.h"
#include "engine/step_planner.h"

namespace paceline {

// The parts that an engine is made of, and its step.
struct EngineCore {
  EngineCore(const Engine& owner, Runner& its_runner, Memory& memory, StateCache& its_cache,
             const EngineLimits& asked, TokenTexts token_texts, Drafter* drafter);
  ~EngineCore() { end_all(); }

  bool step();
  void end_all();

  // In the order of the step.
  void give_way();
  void apply();
  void fail_starved_sequence();
  void save_states();
  void build_batch();
  void go_on_running();
  void compute();
  void forward();
  void fail_batch(ErrorCode code, const std::string& message);
  void end_run();
  void publish();
  void show_record();

  Sequence& sequence_of(const PlannedSlice& slice) const {
    return *requests.running()[static_cast<size_t>(slice.sequence)];
  }
  // Those that a sequence takes of the plan's steps, at most; 0 or 1 outside of a run.
  int64_t steps_of(const Sequence& sequence) const {
    return std::min(planner.plan().num_steps, sequence.num_run_steps);
  }

  const Engine& engine;  // for inspections
  Runner& runner;
  StateCache& cache;
  const EngineLimits limits;
  const Clock::time_point created = Clock::now();
  StepLog log;
  RequestIntake intake;
  RequestList requests;
  Speculation speculation;
  DecodeRun run;
  StepPlanner planner;
  StepBatch batch;
  StepDraws draws;
  StepCommit commit;
  std::string lost_device;
};

namespace {

// Rows that attend in both directions share no prefix, and are no decodes.
EngineLimits with_directions(EngineLimits limits) {
  if (!limits.bidirectional) return limits;
  limits.prefix_cache = false;
  limits.max_run_steps = 1;
  return limits;
}

}  // namespace

EngineCore::EngineCore(const Engine& owner, Runner& its_runner, Memory& memory,
                       StateCache& its_cache, const EngineLimits& asked, TokenTexts token_texts,
                       Drafter* drafter)
    : engine(owner),
      runner(its_runner),
      cache(its_cache),
      limits(with_directions(asked)),
      intake(runner, cache, limits),
      requests(intake, cache, limits, log),
      speculation(limits.speculation, drafter, runner.vocab_size(), cache.has_states()),
      run(runner, limits.max_run_steps),
      planner(requests, cache, limits, run, speculation, log),
      batch(cache),
      draws(runner, memory, limits, log),
      commit({.runner = runner,
              .cache = cache,
              .limits = limits,
              .requests = requests,
              .speculation = speculation,
              .draws = draws,
              .log = log},
             std::move(token_texts)) {}

bool EngineCore::step() {
  log.began = Clock::now();
  requests.take_in();  // new requests and cancellations
  for (const EngineInspection& look : requests.inspections()) look(engine);
  if (run.is_active()) {
    go_on_running();  // a later step of a plan has the slices of the first one
  } else {
    give_way();        // deferred sequences leave
    planner.decide();  // changes nothing, and proposes tokens for decoding sequences
    apply();           // preempts, admits, reserves
    build_batch();     // flat arrays
  }
  compute();  // runs the model and commits the results
  publish();  // sends the events
  return !requests.running().empty() || !requests.waiting().empty();
}

// Deferred sequences are the last running ones.
void EngineCore::give_way() {
  int64_t num_leaving = planner.num_leaving();
  for (size_t i = requests.running().size(); i > 0 && num_leaving > 0; --i, --num_leaving) {
    if (!requests.running()[i - 1]->is_deferred) break;
    requests.preempt(i - 1);
    ++log.counters.deferred_preemptions;
  }
  requests.compact();
}

// The only place that acquires blocks; finished sequences release theirs as they end, and drafts
// and runs what was not taken behind the commit.
void EngineCore::apply() {
  const StepPlan& plan = planner.plan();
  cache.clear_copies();
  if (plan.starved && !requests.drop_oldest_hold()) fail_starved_sequence();
  for (const PlannedAdmission& admission : plan.admitted) {
    requests.admit(planner.view().waiting_index(admission.waiting), admission.prefix_length);
  }
  requests.compact();
  for (const int32_t index : plan.preempted) requests.preempt(static_cast<size_t>(index));
  for (const PlannedSlice& slice : plan.slices) {
    Sequence& sequence = sequence_of(slice);
    const int64_t more = std::max<int64_t>(slice.num_drafted, steps_of(sequence) - 1);
    const auto missing = cache.reserve(sequence.blocks, sequence.num_wanted() + more,
                                       slice.first + slice.count - slice.num_drafted + more);
    PL_CHECK(!missing.has_value(), "the plan counted blocks that aren't there");
  }
  if (cache.has_states() && limits.prefix_cache) save_states();
}

// Fails one sequence so that the others go on. submit() refuses requests that could never fit, so
// this is a last resort.
void EngineCore::fail_starved_sequence() {
  const auto list = requests.running().empty() ? requests.waiting() : requests.running();
  if (list.empty()) return;
  requests.fail(*list.front(), {ErrorCode::exhausted,
                                "key/value cache: no block is left for it; a larger "
                                "--kv-cache-memory would fit it"});
}

// With the blocks that the plan left. A held prefix keeps its own block for the state at its end,
// which nothing evicts.
void EngineCore::save_states() {
  const int64_t size = cache.block_size();
  for (const PlannedSlice& slice : planner.plan().slices) {
    Sequence& sequence = sequence_of(slice);
    if (sequence.request().prefix.write != PrefixUse::Write::keep) continue;
    const int64_t more = std::max<int64_t>(0, steps_of(sequence) - 1);
    const int64_t end = slice.first + slice.count - slice.num_drafted + more;
    for (int64_t p = sequence.next_saved_state(slice.first, size); p <= end;
         p = sequence.next_saved_state(p, size)) {
      if (p != sequence.num_held) cache.save_state(sequence.blocks, p);
    }
  }
}

// In the plan's order, but for rows of one adapter, which become neighbours: their products are
// one.
void EngineCore::build_batch() {
  batch.clear();
  const auto num_adapters = static_cast<int32_t>(planner.view().adapters().size());
  for (int32_t adapter = 0; adapter < num_adapters; ++adapter) {
    for (const PlannedSlice& slice : planner.plan().slices) {
      Sequence& sequence = sequence_of(slice);
      if (sequence.adapter == adapter) batch.add(sequence, slice.count, slice.num_drafted);
    }
  }
  batch.finish();
  draws.begin(batch);
}

// Where something has changed, the step of a run is its last one.
void EngineCore::go_on_running() {
  const bool leaves_slot = batch.advance();
  const int64_t count = std::ssize(batch.slices()), num_slots = batch.batch().num_rows();
  const bool has_gap = count < num_slots;
  // A step costs what all slots cost, but for a few: where half are empty, the next run has fewer.
  constexpr int64_t kFewSlots = 8;
  const bool is_sparse = num_slots > kFewSlots && 2 * count <= num_slots;
  if (requests.has_news() || is_sparse || (leaves_slot && cache.has_states()) ||
      (has_gap && !requests.waiting().empty()) || planner.could_admit()) {
    run.end_soon();
  }
}

// An error of the runner or of the commit ends the sequences of this step and no others.
void EngineCore::compute() {
  for (const StepSlice& slice : batch.slices()) {
    log.record.num_rows += slice.count;
    log.record.slices.push_back({.id = slice.sequence->arrival_id,
                                 .first = slice.sequence->num_computed,
                                 .count = slice.count});
  }
  // No sequence is left, of a run either, or none has blocks yet.
  if (batch.slices().empty()) return run.stop();
  try {
    forward();
    commit.commit(batch);
  } catch (const DeviceLost& error) {
    lost_device = error.what();
    fail_batch(error.code(), error.what());
  } catch (const Error& error) {
    fail_batch(error.code(), error.what());
  } catch (const std::exception& error) {
    fail_batch(ErrorCode::internal, error.what());
  }
  draws.finish();
  // A step that has begun may be behind the state that such a sequence leaves; none more may.
  if (batch.forget_finished() && cache.has_states()) run.end_soon();
  const bool goes_on = run.is_active() && !batch.slices().empty();
  if (planner.plan().num_steps > 1 && !goes_on) end_run();
}

void EngineCore::forward() {
  const auto begin = Clock::now();
  const int64_t num_steps = planner.plan().num_steps;
  if (num_steps > 1) {
    if (!run.is_active()) run.start(batch, planner.view().adapters(), num_steps);
    const std::span<const DecodedToken> tokens = run.next();
    draws.take(batch, tokens);
    for (const StepSlice& slice : batch.slices()) {
      slice.sequence->is_ahead =
          run.is_ahead(slice.first_row, tokens[static_cast<size_t>(slice.first_row)]);
    }
    ++log.counters.run_steps;
  } else {
    runner.run(batch.batch(), planner.view().adapters());
    draws.draw_rows(batch);
  }
  log.record.forward_us += microseconds_of(Clock::now() - begin);
}

void EngineCore::fail_batch(ErrorCode code, const std::string& message) {
  for (const StepSlice& slice : batch.slices()) {
    if (!slice.sequence->finished) requests.fail(*slice.sequence, {code, message});
  }
}

// Gives back the slots of steps that were not taken.
void EngineCore::end_run() {
  for (const StepSlice& slice : batch.slices()) slice.sequence->give_back_slots(cache);
  run.stop();
}

void EngineCore::publish() {
  requests.publish();
  if (planner.plan().empty()) return;
  StepRecord& record = log.record;
  record.step = log.counters.steps;
  const Clock::duration total = Clock::now() - log.began;
  record.at_us = microseconds_of(log.began - created);
  record.total_us = microseconds_of(total);
  planner.record_step(seconds_of(total) - 1e-6 * static_cast<double>(record.draft_us));
  log.counters.speculation = speculation.counters();
  log.counters.constraints.forced_tokens += record.num_forced;
  if (log.observer != nullptr) show_record();
  record.clear();
  ++log.counters.steps;
}

// Sequences that ended between steps are in the next step's record.
void EngineCore::show_record() {
  StepRecord& record = log.record;
  record.num_waiting = std::ssize(requests.waiting());
  for (int g = 0; g < cache.num_groups(); ++g) {
    record.free_blocks.push_back(cache.pool(g).num_free());
    record.cached_blocks.push_back(cache.pool(g).num_cached());
  }
  for (const auto& sequence : requests.running()) {
    record.blocks.push_back({.id = sequence->arrival_id, .count = sequence->blocks.num_kept(0)});
  }
  log.observer->on_step(record);
}

void EngineCore::end_all() {
  intake.close();
  run.stop();
  requests.end_all();
}

StepEngine::StepEngine(Runner& runner, Memory& memory, StateCache& cache, EngineLimits limits,
                       TokenTexts token_texts, Drafter* drafter)
    : core_(std::make_unique<EngineCore>(*this, runner, memory, cache, limits,
                                         std::move(token_texts), drafter)) {}

StepEngine::~StepEngine() = default;

std::optional<RequestId> StepEngine::submit(GenerateRequest request,
                                            std::shared_ptr<Channel> channel, int64_t tag) {
  return core_->intake.submit(std::move(request), std::move(channel), tag);
}

void StepEngine::cancel(RequestId id) { core_->intake.cancel(id); }
void StepEngine::release(RequestId id) { core_->intake.release(id); }
void StepEngine::defer(RequestId id) { core_->intake.change({.id = id, .begins = true}); }
void StepEngine::resume(RequestId id) { core_->intake.change({.id = id, .begins = false}); }
void StepEngine::inspect(EngineInspection look) { core_->intake.inspect(std::move(look)); }

bool StepEngine::step() { return core_->step(); }
const std::string& StepEngine::lost_device() const { return core_->lost_device; }

size_t StepEngine::wait_for_mail(std::chrono::milliseconds timeout, size_t at_least) {
  return core_->intake.wait(timeout, at_least);
}

void StepEngine::wake() { core_->intake.wake(); }
void StepEngine::end_all() { core_->end_all(); }
void StepEngine::check(GenerateRequest& request) const { core_->intake.check(request); }

const EngineLimits& StepEngine::limits() const { return core_->limits; }
int64_t StepEngine::vocab_size() const { return core_->runner.vocab_size(); }
int64_t StepEngine::block_size() const { return core_->cache.block_size(); }
bool StepEngine::keeps_states() const { return core_->cache.has_states(); }

std::string_view StepEngine::token_bytes(TokenId id, SpecialTokens specials) const {
  return core_->commit.token_bytes(id, specials);
}

int64_t StepEngine::num_running() const { return core_->requests.num_running(); }
int64_t StepEngine::num_waiting() const { return core_->requests.num_waiting(); }
const QueueLimit& StepEngine::queue() const { return core_->intake.queue(); }

const StateCache& StepEngine::cache() const { return core_->cache; }
std::span<const std::unique_ptr<Sequence>> StepEngine::running() const {
  return core_->requests.running();
}
std::span<const std::unique_ptr<Sequence>> StepEngine::waiting() const {
  return core_->requests.waiting();
}

std::vector<int64_t> StepEngine::unstarted_tags() const {
  std::vector<int64_t> tags;
  for (const auto& sequence : core_->requests.waiting()) {
    if (!sequence->has_started) tags.push_back(sequence->shared->tag);
  }
  return tags;
}

const EngineCounters& StepEngine::counters() const { return core_->log.counters; }
EngineSnapshot StepEngine::snapshot() const { return snapshot_of(*this); }
void StepEngine::set_observer(StepObserver* observer) { core_->log.observer = observer; }
void StepEngine::check_integrity() const { core_->requests.check_integrity(); }

}  // namespace paceline
