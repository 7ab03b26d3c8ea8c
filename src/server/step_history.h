// StepHistory keeps the engine's last steps for /v1/requests, and counts them for /metrics.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/time_source.h"
#include "engine/step_record.h"
#include "server/histogram.h"

namespace paceline {

// Written on the engine's thread, read from any.
class StepHistory : public StepObserver {
 public:
  // Passes every call on to `next`, if there is one.
  explicit StepHistory(StepObserver* next = nullptr) : next_(next) {}

  // Calls `warn` on the engine's thread with the first failure of a drafter. Set before the first
  // step.
  void on_first_draft_failure(std::function<void(const std::string&)> warn) {
    warn_ = std::move(warn);
  }

  struct Step {
    int64_t step = 0;
    double seconds = 0;
    std::vector<std::pair<int64_t, int64_t>> slices;  // arrival id, rows
    std::vector<StepRecord::Draft> drafts;            // the last rows of these slices
  };
  // At most the last 64, the oldest first.
  std::vector<Step> last_steps() const;
  // Tokens generated per second over the last seconds.
  double tokens_per_second() const;
  // Tokens computed per step.
  Histogram tokens_per_step() const;

  void on_submitted(const Sequence& sequence, int64_t step) override;
  void on_cancelled(RequestId id, int64_t step) override;
  void on_step(const StepRecord& record) override;

 private:
  struct Drawn {
    Clock::time_point at;
    int64_t num_tokens = 0;
  };

  StepObserver* next_;
  std::function<void(const std::string&)> warn_;  // empty once it was called
  mutable std::mutex mutex_;
  std::vector<Step> steps_;  // a ring, overwritten from the oldest on
  size_t num_steps_ = 0;
  std::vector<Drawn> drawn_;  // likewise, a second of steps may be a thousand
  size_t num_drawn_ = 0;
  Histogram tokens_per_step_{step_tokens_bounds()};
};

}  // namespace paceline
