#include "engine/step_planner.h"

#include <algorithm>

namespace paceline {

StepPlanner::StepPlanner(const RequestList& requests, const StateCache& cache,
                         const EngineLimits& limits, const DecodeRun& run, Speculation& speculation,
                         StepLog& log)
    : requests_(requests),
      run_(run),
      speculation_(speculation),
      log_(log),
      sched_limits_(
          {.block_size = cache.block_size(),
           .max_sequences = requests.max_running(),
           .max_adapters = std::max<int64_t>(1, limits.max_adapters),
           .max_rows = limits.max_batched_tokens,
           .max_slice = limits.max_chunk > 0 ? limits.max_chunk : limits.max_batched_tokens}),
      view_(requests, cache, limits),
      budget_({.slowdown = limits.max_step_slowdown, .free_seconds = limits.free_step_seconds},
              limits.max_batched_tokens) {}

int64_t StepPlanner::num_leaving() const {
  const auto running = requests_.running();
  if (running.empty() || !running.back()->is_deferred) return 0;
  const bool has_places = requests_.room() > 0 && !plan_.lacks_adapters;
  if (has_places && !plan_.lacks_blocks) return 0;
  return std::ranges::count_if(requests_.waiting(), [this](const auto& one) {
    return !one->is_deferred && one->waiting_since < log_.counters.steps;
  });
}

void StepPlanner::decide() {
  const auto begin = Clock::now();
  const auto running = requests_.running();
  speculation_.wish(running);
  for (const auto& sequence : running) {
    sequence->num_run_steps = speculation_.may_draft(*sequence) ? 0 : run_.steps_of(*sequence);
  }
  // Those that wait for a deferred sequence's place get it in the next step.
  const bool gives_way =
      !requests_.waiting().empty() && !running.empty() && running.back()->is_deferred;
  sched_limits_.max_steps = gives_way ? 1 : run_.max_steps(std::ssize(running));
  const SchedView& view = view_.build(log_.counters.steps, sched_limits_);
  const int64_t num_decodes = view_.num_decodes(), rows = budget_.rows_beside(num_decodes);
  sched_limits_.max_rows_beside_decode = rows;
  sched_limits_.min_prefill_beside_decode = rows > num_decodes ? 1 : 0;
  plan_step(view, sched_limits_, scratch_, plan_);
  const auto planned = Clock::now();
  log_.record.plan_us = microseconds_of(planned - begin);
  if (!speculation_.propose(running, plan_, log_.record.draft_failure)) return;
  log_.record.draft_us = microseconds_of(Clock::now() - planned);
}

bool StepPlanner::could_admit() {
  if (requests_.waiting().empty()) return false;
  SchedLimits limits = sched_limits_;
  limits.max_steps = 1;
  view_.build(log_.counters.steps, limits);
  plan_step(view_.without_reserves(), limits, scratch_, plan_without_run_);
  return !plan_without_run_.admitted.empty();
}

void StepPlanner::record_step(double seconds) {
  const StepRecord& record = log_.record;
  // All rows of a run's steps are decodes.
  const int64_t num_decodes = plan_.num_steps > 1 ? record.num_rows : view_.num_decodes();
  budget_.record(record.num_rows, num_decodes, seconds);
  speculation_.record_step(record, num_decodes, seconds);
}

}  // namespace paceline
