#include "sampling/race.h"

#include <algorithm>
#include <bit>
#include <numbers>

#include "base/random.h"

namespace paceline {

namespace {

// In (0, 1), rounded; never decreases.
double unit_noise(uint64_t noise) {
  return std::min((static_cast<double>(noise) + 0.5) * 0x1p-64, 1.0 - 0x1p-53);
}

// -log(1 - u) for u in (0, 1), to a few units in the last place: 1 - u = m * 2^exponent with m in
// [sqrt(1/2), sqrt(2)), and -log(m) = 2 atanh(s) with s = (1 - m) / (1 + m) as a series.
double minus_log_of_rest(double u) {
  constexpr uint64_t kMantissaBits = 52;
  constexpr auto kSqrtHalf = std::bit_cast<uint64_t>(std::numbers::sqrt2 / 2);
  const auto bits = std::bit_cast<uint64_t>(1.0 - u);
  const int64_t exponent = static_cast<int64_t>(bits - kSqrtHalf) >> kMantissaBits;
  const auto m = std::bit_cast<double>(bits - (static_cast<uint64_t>(exponent) << kMantissaBits));
  // Without the rounding of 1 - u where that would matter.
  const double s = exponent == 0 ? u / (2.0 - u) : (1.0 - m) / (1.0 + m);
  const double square = s * s;
  double series = 0;
  for (int n = 21; n >= 1; n -= 2) series = series * square + 1.0 / n;
  return 2.0 * s * series - static_cast<double>(exponent) * std::numbers::ln2;
}

}  // namespace

uint64_t draw_key(uint64_t seed, int64_t position, DrawPurpose purpose) {
  const auto words =
      philox4x32(seed, static_cast<uint64_t>(position), static_cast<uint64_t>(purpose));
  return (uint64_t{words[0]} << 32) | words[1];
}

uint64_t least_noise(uint64_t key, int32_t first_id, int64_t count) {
  uint64_t state = key + (static_cast<uint64_t>(first_id) + 1) * kNoiseStep;
  uint64_t least = noise_of_state(state);
  for (int64_t i = 1; i < count; ++i) least = std::min(least, noise_of_state(state += kNoiseStep));
  return least;
}

double exponential_time(uint64_t noise) { return minus_log_of_rest(unit_noise(noise)); }

void Race::finish(int32_t id, double weight, uint64_t noise) {
  const double time = exponential_time(noise) / weight;
  if (time > time_ || (time == time_ && id > winner_)) return;
  winner_ = id;
  time_ = time;
  bound_ = time * ((1.0 + 0x1p-40) * 0x1p53);
}

uint64_t Race::most_noise(double weight) const {
  const double most = bound_ * weight * 0x1p11;
  return most < 0x1.fp63 ? static_cast<uint64_t>(most) + 1 : ~uint64_t{0};
}

}  // namespace paceline
