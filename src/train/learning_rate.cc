#include "train/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace paceline {

double LearningRate::at(int64_t step) const {
  if (step < warmup_steps) {
    return peak * static_cast<double>(step + 1) / static_cast<double>(warmup_steps + 1);
  }
  const int64_t length = std::max<int64_t>(num_steps - warmup_steps, 1);
  const double done =
      std::min(1.0, static_cast<double>(step - warmup_steps) / static_cast<double>(length));
  switch (schedule) {
    case Schedule::constant:
      return peak;
    case Schedule::linear:
      return peak + (last - peak) * done;
    case Schedule::wsd: {
      const auto left = static_cast<double>(num_steps - std::min(step, num_steps));
      const double decay = decay_fraction * static_cast<double>(num_steps);
      return left < decay ? last + (peak - last) * left / decay : peak;
    }
    case Schedule::cosine:
      break;
  }
  return last + (peak - last) * 0.5 * (1.0 + std::cos(std::numbers::pi * done));
}

}  // namespace paceline
