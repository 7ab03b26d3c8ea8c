// StepPlanner decides what a step computes: the policy's view of the sequences, its limits, and the
// drafts that it has rows for.
#pragma once

#include <cstdint>

#include "engine/decode_run.h"
#include "engine/request_list.h"
#include "engine/speculation.h"
#include "engine/step_budget.h"
#include "engine/step_record.h"
#include "engine/step_view.h"
#include "sched/plan_step.h"
#include "state/state_cache.h"

namespace paceline {

// Everything referred to must outlive it.
class StepPlanner {
 public:
  StepPlanner(const RequestList& requests, const StateCache& cache, const EngineLimits& limits,
              const DecodeRun& run, Speculation& speculation, StepLog& log);

  // How many deferred sequences leave before the next plan: one for each sequence that found no
  // place, for itself or its adapter, or too few blocks in the step before.
  int64_t num_leaving() const;
  // Plans the step and proposes its drafts. Blocks and lists stay as they are.
  void decide();
  const StepPlan& plan() const { return plan_; }
  const StepView& view() const { return view_; }
  // Whether a plan would admit a waiting sequence, had the run ended: windows have released blocks
  // since it began.
  bool could_admit();
  // Learns from the time of the step without its drafts.
  void record_step(double seconds);

 private:
  const RequestList& requests_;
  const DecodeRun& run_;
  Speculation& speculation_;
  StepLog& log_;
  SchedLimits sched_limits_;
  StepView view_;
  PlanScratch scratch_;
  StepPlan plan_;
  StepPlan plan_without_run_;  // of could_admit()
  StepBudget budget_;
};

}  // namespace paceline
