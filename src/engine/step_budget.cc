#include "engine/step_budget.h"

#include <algorithm>

namespace paceline {
namespace {

constexpr double kNewest = 0.25;       // the newest time's weight in the running mean
constexpr int64_t kManyRows = 16;      // below that a step's time is not in its rows
constexpr int64_t kMeasureEvery = 64;  // steps

void average(double& mean, double newest) {
  mean = mean == 0 ? newest : mean + kNewest * (newest - mean);
}

}  // namespace

void StepBudget::record(int64_t rows, int64_t num_decodes, double seconds) {
  if (rows == 0) return;
  if (rows == num_decodes) {
    average(decode_seconds_, seconds);
    steps_since_decode_ = 0;
    return;
  }
  ++steps_since_decode_;
  if (rows >= kManyRows) average(seconds_per_row_, seconds / static_cast<double>(rows));
}

int64_t StepBudget::rows_beside(int64_t num_decodes) const {
  if (decode_seconds_ == 0 || steps_since_decode_ >= kMeasureEvery) return num_decodes;
  if (seconds_per_row_ == 0) return std::min(max_rows_, num_decodes + kManyRows);
  const double rows = slowdown_ * decode_seconds_ / seconds_per_row_;
  if (rows >= static_cast<double>(max_rows_)) return max_rows_;
  return std::max(static_cast<int64_t>(rows), num_decodes + 1);
}

}  // namespace paceline
