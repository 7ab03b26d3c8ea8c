#include "engine/step_budget.h"

#include <algorithm>

namespace paceline {
namespace {

constexpr double kNewest = 0.25;       // the newest time's weight in the running mean
constexpr double kFirstRows = 8;       // few enough for any machine
constexpr double kWellBelow = 0.85;    // of the limit
constexpr double kFarBelow = 0.35;     // of the limit: twice the rows take at most twice the time
constexpr double kGrowth = 1.15;       // from there it stays below the limit
constexpr int64_t kMeasureEvery = 64;  // steps

}  // namespace

StepBudget::StepBudget(Limit limit, int64_t max_rows)
    : limit_(limit), max_rows_(max_rows), prefill_rows_(kFirstRows) {}

void StepBudget::record(int64_t rows, int64_t num_decodes, double seconds) {
  if (limit_.slowdown == 0 || num_decodes == 0 || rows == 0) return;
  if (rows == num_decodes) {
    decode_seconds_ =
        decode_seconds_ == 0 ? seconds : decode_seconds_ + kNewest * (seconds - decode_seconds_);
    steps_since_decode_ = 0;
    return;
  }
  ++steps_since_decode_;
  const double limit = std::max(limit_.slowdown * decode_seconds_, limit_.free_seconds);
  const auto prefilled = static_cast<double>(rows - num_decodes);
  if (seconds > limit) {
    prefill_rows_ = std::max(1.0, std::min(prefill_rows_, prefilled) * limit / seconds);
  } else if (seconds < kWellBelow * limit && prefilled >= prefill_rows_ - 1) {
    const double growth = seconds < kFarBelow * limit ? 2 : kGrowth;
    prefill_rows_ = std::min(prefill_rows_ * growth + 1, static_cast<double>(max_rows_));
  }
}

int64_t StepBudget::rows_beside(int64_t num_decodes) const {
  if (limit_.slowdown == 0) return max_rows_;
  if (decode_seconds_ == 0 || steps_since_decode_ >= kMeasureEvery) return num_decodes;
  return std::min(max_rows_, num_decodes + static_cast<int64_t>(prefill_rows_));
}

}  // namespace paceline
