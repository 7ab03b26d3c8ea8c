// StepRecord is what one step did, for those who watch the engine: traces, statistics, tests.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/event.h"

namespace paceline {

struct Sequence;

// Ids are arrival ids: request id + choice.
struct StepRecord {
  struct Slice {
    int64_t id = 0;
    int64_t first = 0;
    int64_t count = 0;
  };
  struct IdAndCount {
    int64_t id = 0;
    int64_t count = 0;
  };
  struct IdAndReason {
    int64_t id = 0;
    FinishReason reason = FinishReason::stop;
  };

  int64_t step = 0;
  EngineClock::time_point begin;
  double plan_seconds = 0;
  double forward_seconds = 0;  // the runner's
  double total_seconds = 0;
  int64_t num_rows = 0;
  int64_t num_waiting = 0;
  std::vector<int64_t> free_blocks;    // per group, cached ones included
  std::vector<int64_t> cached_blocks;  // per group
  std::vector<IdAndCount> admitted;    // tokens taken from the prefix cache
  std::vector<int64_t> preempted;
  std::vector<Slice> slices;
  std::vector<IdAndCount> blocks;  // held in the first group
  std::vector<IdAndCount> tokens;  // drawn
  std::vector<IdAndReason> finished;

  void clear();
};

// Called on the engine's thread.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void on_submitted(const Sequence& sequence, int64_t step) = 0;
  virtual void on_cancelled(RequestId id, int64_t step) = 0;
  virtual void on_step(const StepRecord& record) = 0;
};

}  // namespace paceline
