#include "sampling/race.h"

#include <algorithm>

namespace paceline {

uint64_t least_noise(uint64_t key, int32_t first_id, int64_t count) {
  uint64_t state = key + (static_cast<uint64_t>(first_id) + 1) * kNoiseStep;
  uint64_t least = noise_of_state(state);
  for (int64_t i = 1; i < count; ++i) least = std::min(least, noise_of_state(state += kNoiseStep));
  return least;
}

void Race::finish(int32_t id, double weight, uint64_t noise) {
  const double time = exponential_time(noise) / weight;
  if (time > time_ || (time == time_ && id > winner_)) return;
  winner_ = id;
  time_ = time;
  bound_ = noise_bound(time);
}

uint64_t Race::most_noise(double weight) const {
  const double most = bound_ * weight * 0x1p11;
  return most < 0x1.fp63 ? static_cast<uint64_t>(most) + 1 : ~uint64_t{0};
}

}  // namespace paceline
