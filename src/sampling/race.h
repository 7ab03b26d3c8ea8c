// Race draws a token by weight: each one arrives after an exponential time of its own, divided by
// its weight, and the first wins.
#pragma once

#include <cstdint>
#include <limits>

#include "base/sampling_math.h"

namespace paceline {

// The least of `count` > 0 tokens from `first_id` on.
uint64_t least_noise(uint64_t key, int32_t first_id, int64_t count);

// A token's time depends on the key, its id and its weight alone. So two races with the same key
// and different weights mostly have the same winner: with probability (1 - d) / (1 + d) at least, d
// the total variation distance of their distributions (Daliri, Musco, Suresh, "Coupling without
// Communication and Drafter-Invariant Speculative Decoding", 2024). The order of entries doesn't
// matter.
class Race {
 public:
  explicit Race(uint64_t key) : key_(key) {}

  // A token of weight 0 never wins. Equal times go to the lowest id.
  void enter(int32_t id, double weight) {
    const uint64_t noise = token_noise(key_, id);
    // -log(1 - u) >= u >= the first 53 bits of the noise. Infinity * 0 is NaN.
    if (static_cast<double>(static_cast<int64_t>(noise >> 11)) <= bound_ * weight) {
      finish(id, weight, noise);
    }
  }
  // A token of at most this weight, above 0, can't win with more noise than that.
  uint64_t most_noise(double weight) const;

  // -1 without any entry of a positive weight.
  int32_t winner() const { return winner_; }

 private:
  void finish(int32_t id, double weight, uint64_t noise);

  uint64_t key_;
  int32_t winner_ = -1;
  double time_ = std::numeric_limits<double>::infinity();
  double bound_ = time_;  // in units of 2^-53, and slightly more, beyond the rounding of times
};

}  // namespace paceline
