// StepRecord is what one step did, for traces, statistics and tests. trace_lines.h lists its
// fields.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/time_source.h"
#include "engine/engine.h"
#include "engine/event.h"

namespace paceline {

struct Sequence;

// Ids are arrival ids: request id + choice.
struct StepRecord {
  struct Slice {
    int64_t id = 0;
    int64_t first = 0;
    int64_t count = 0;  // rows, drafted tokens included
  };
  // The last rows of a slice.
  struct Draft {
    int64_t id = 0;
    int64_t drafted = 0;
    int64_t accepted = 0;  // of these, drawn
    bool operator==(const Draft&) const = default;
  };
  struct Admission {
    int64_t id = 0;
    int64_t cached_tokens = 0;  // taken from the prefix cache
  };
  struct Blocks {
    int64_t id = 0;
    int64_t count = 0;
  };
  struct DrawnToken {
    int64_t id = 0;
    TokenId token = 0;
  };
  struct IdAndReason {
    int64_t id = 0;
    FinishReason reason = FinishReason::stop;
  };

  int64_t step = 0;
  int64_t at_us = 0;  // when it began, since the engine was constructed
  int64_t plan_us = 0;
  int64_t draft_us = 0;
  int64_t forward_us = 0;  // the runner's
  int64_t total_us = 0;
  int64_t num_rows = 0;
  int64_t num_forced = 0;  // of these, tokens that a constraint forces; not in the trace
  int64_t num_waiting = 0;
  std::vector<int64_t> free_blocks;    // per group, cached ones included
  std::vector<int64_t> cached_blocks;  // per group
  std::vector<Admission> admitted;
  std::vector<int64_t> preempted;
  std::vector<Slice> slices;
  std::vector<Draft> drafts;
  std::vector<Blocks> blocks;  // held in the first group
  std::vector<DrawnToken> tokens;
  std::vector<IdAndReason> finished;
  std::string draft_failure;  // of a drafter, in this step; not in the trace

  void clear() {
    plan_us = draft_us = forward_us = total_us = 0;
    num_rows = num_forced = num_waiting = 0;
    free_blocks.clear();
    cached_blocks.clear();
    admitted.clear();
    preempted.clear();
    slices.clear();
    drafts.clear();
    blocks.clear();
    tokens.clear();
    finished.clear();
    draft_failure.clear();
  }
};

// Called on the engine's thread.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void on_submitted(const Sequence& sequence, int64_t step) = 0;
  virtual void on_cancelled(RequestId id, int64_t step) = 0;
  virtual void on_step(const StepRecord& record) = 0;
};

// What the parts of a step write down.
struct StepLog {
  StepRecord record;  // of the step under way
  EngineCounters counters;
  StepObserver* observer = nullptr;
  Clock::time_point began;  // the step
};

}  // namespace paceline
