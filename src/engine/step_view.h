// StepView is the policy's view of the engine's sequences and blocks, in buffers that are reused.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/sequence.h"
#include "kv/kv_cache.h"
#include "sched/plan_step.h"

namespace paceline {

class StepView {
 public:
  explicit StepView(const KvCache& cache) : cache_(cache) {}

  // Looks up the prefixes of at most `room` waiting sequences, and of no more than fill a step.
  const SchedView& build(std::span<const std::unique_ptr<Sequence>> running,
                         std::span<const std::unique_ptr<Sequence>> waiting, int64_t room,
                         int64_t step, const SchedLimits& limits,
                         const EngineLimits& engine_limits);
  // The last view as it would be without the blocks that running sequences have reserved for more
  // than their next token.
  const SchedView& without_reserves();

  // The view's waiting sequences as indices in the engine's.
  size_t waiting_index(int32_t in_view) const { return waiting_[static_cast<size_t>(in_view)]; }
  // Sequences of the view that are computing one row.
  int64_t num_decodes() const { return num_decodes_; }
  // Numbers of adapters (Sequence::adapter) are below it; 0 stands for none.
  int32_t num_adapters() const { return static_cast<int32_t>(adapters_.size()); }

 private:
  void add_running(Sequence& sequence);
  void number_adapter(Sequence& sequence);
  void choose_waiting(std::span<const std::unique_ptr<Sequence>> waiting, int64_t room,
                      const SchedLimits& limits);
  void add_waiting(Sequence& sequence, const EngineLimits& limits);
  // The hash of the first full block that the sequence still has to compute, or nullptr.
  const Hash128* next_block(const Sequence& sequence, int64_t num_computed) const;

  const KvCache& cache_;
  SchedView view_;
  std::vector<SchedGroup> groups_;
  std::vector<SchedBlocks> blocks_;  // [running, groups]
  std::vector<SchedRunning> running_views_;
  std::vector<SchedWaiting> waiting_views_;
  std::vector<size_t> waiting_;
  std::vector<SchedWaiting> candidates_;
  std::vector<int32_t> order_;
  std::vector<Hash128> coming_;                 // blocks that are being computed
  std::vector<const LoadedAdapter*> adapters_;  // by number
  int64_t num_decodes_ = 0;
};

}  // namespace paceline
