#include "train/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace paceline {

double LearningRate::at(int64_t step) const {
  if (step < warmup_steps) {
    const auto steps = static_cast<double>(warmup_steps);
    if (!warmup_init) return peak * static_cast<double>(step + 1) / (steps + 1);
    return *warmup_init + (peak - *warmup_init) * static_cast<double>(step) / steps;
  }
  const int64_t begin = warmup_steps + hold_steps;
  const int64_t length = decay_steps > 0 ? decay_steps : std::max<int64_t>(num_steps - begin, 1);
  const double done =
      std::clamp(static_cast<double>(step - begin) / static_cast<double>(length), 0.0, 1.0);
  switch (schedule) {
    case RateSchedule::constant:
      return peak;
    case RateSchedule::linear:
      return peak + (last - peak) * done;
    case RateSchedule::wsd: {
      const auto left = static_cast<double>(num_steps - std::min(step, num_steps));
      const double decay = decay_fraction * static_cast<double>(num_steps);
      return left < decay ? last + (peak - last) * left / decay : peak;
    }
    case RateSchedule::cosine:
      break;
  }
  return last + (peak - last) * 0.5 * (1.0 + std::cos(std::numbers::pi * done));
}

}  // namespace paceline
