// StepView is the policy's view of the engine's sequences and blocks, in buffers that are reused.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/request_list.h"
#include "sched/plan_step.h"
#include "state/state_cache.h"

namespace paceline {

class StepView {
 public:
  // Everything must outlive it.
  StepView(const RequestList& requests, const StateCache& cache, const EngineLimits& limits)
      : requests_(requests), cache_(cache), engine_limits_(limits) {}

  // Looks up the prefixes of no more waiting sequences than find a place, or fill a step.
  const SchedView& build(int64_t step, const SchedLimits& limits);
  // The last view as it would be without the blocks that running sequences have reserved for more
  // than their next token.
  const SchedView& without_reserves();

  // The view's waiting sequences as indices in the engine's.
  size_t waiting_index(int32_t in_view) const { return waiting_[static_cast<size_t>(in_view)]; }
  // Sequences of the view that are computing one row.
  int64_t num_decodes() const { return num_decodes_; }
  // By number (Sequence::adapter), from 1 on.
  AdapterTable adapters() const { return adapters_; }

 private:
  void add_running(Sequence& sequence);
  void number_adapter(Sequence& sequence);
  void choose_waiting(const SchedLimits& limits);
  void add_waiting(Sequence& sequence);
  // The hash of the first full block that others can reuse once the sequence has computed it, or
  // nullptr.
  const Hash128* next_block(const Sequence& sequence, int64_t num_computed) const;
  // Whether another sequence computes a block that this one needs between positions `begin` and
  // `end`.
  bool is_coming(const Sequence& sequence, int64_t begin, int64_t end) const;

  const RequestList& requests_;
  const StateCache& cache_;
  const EngineLimits& engine_limits_;
  SchedView view_;
  std::vector<SchedGroup> groups_;
  std::vector<SchedBlocks> blocks_;  // [running, groups]
  std::vector<SchedRunning> running_views_;
  std::vector<SchedWaiting> waiting_views_;
  std::vector<size_t> waiting_;
  std::vector<SchedWaiting> candidates_;
  std::vector<int32_t> order_;
  std::vector<Hash128> coming_;  // blocks that are being computed
  std::vector<const AdapterWeights*> adapters_;
  int64_t num_decodes_ = 0;
};

}  // namespace paceline
