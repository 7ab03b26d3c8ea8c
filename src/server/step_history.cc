#include "server/step_history.h"

#include <algorithm>
#include <utility>

#include "base/time_source.h"

namespace paceline {
namespace {

constexpr size_t kNumSteps = 64;
constexpr size_t kNumDrawn = 4096;
constexpr double kRateSeconds = 2;

}  // namespace

void StepHistory::on_submitted(const Sequence& sequence, int64_t step) {
  if (next_ != nullptr) next_->on_submitted(sequence, step);
}

void StepHistory::on_cancelled(RequestId id, int64_t step) {
  if (next_ != nullptr) next_->on_cancelled(id, step);
}

void StepHistory::on_step(const StepRecord& record) {
  {
    const std::lock_guard lock(mutex_);
    if (steps_.size() < kNumSteps) steps_.emplace_back();
    Step& step = steps_[num_steps_++ % kNumSteps];
    step.step = record.step;
    step.seconds = 1e-6 * static_cast<double>(record.total_us);
    step.slices.clear();
    for (const auto& slice : record.slices) step.slices.emplace_back(slice.id, slice.count);
    step.drafts = record.drafts;
    tokens_per_step_.observe(static_cast<double>(record.num_rows));
    const auto num_tokens = static_cast<int64_t>(record.tokens.size());
    if (drawn_.size() < kNumDrawn) drawn_.emplace_back();
    drawn_[num_drawn_++ % kNumDrawn] = {.at = Clock::now(), .num_tokens = num_tokens};
  }
  if (next_ != nullptr) next_->on_step(record);
  if (!record.draft_failure.empty() && warn_) std::exchange(warn_, nullptr)(record.draft_failure);
}

std::vector<StepHistory::Step> StepHistory::last_steps() const {
  const std::lock_guard lock(mutex_);
  std::vector<Step> ordered = steps_;
  if (num_steps_ > kNumSteps) {
    const auto oldest = static_cast<ptrdiff_t>(num_steps_ % kNumSteps);
    std::rotate(ordered.begin(), ordered.begin() + oldest, ordered.end());
  }
  return ordered;
}

double StepHistory::tokens_per_second() const {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  int64_t num_tokens = 0;
  for (const Drawn& drawn : drawn_) {
    if (std::chrono::duration<double>(now - drawn.at).count() < kRateSeconds) {
      num_tokens += drawn.num_tokens;
    }
  }
  return static_cast<double>(num_tokens) / kRateSeconds;
}

Histogram StepHistory::tokens_per_step() const {
  const std::lock_guard lock(mutex_);
  return tokens_per_step_;
}

}  // namespace paceline
