// Race draws a token by weight: each one arrives after an exponential time of its own, divided by
// its weight, and the first wins.
#pragma once

#include <cstdint>
#include <limits>

namespace paceline {

// What the random numbers of a position are for; each purpose has its own.
enum class DrawPurpose : uint8_t {
  plain,     // a token
  accept,    // whether a drafted token stands
  residual,  // the token instead of a rejected one
};

// 64 random bits.
uint64_t draw_key(uint64_t seed, int64_t position, DrawPurpose purpose = DrawPurpose::plain);

// 64 random bits of a token: output `id` of SplitMix64 from the state `key` (Steele, Lea, Flood,
// "Fast Splittable Pseudorandom Number Generators", 2014), which adds kNoiseStep for each output.
constexpr uint64_t kNoiseStep = 0x9E3779B97F4A7C15u;
inline uint64_t noise_of_state(uint64_t state) {
  state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9u;
  state = (state ^ (state >> 27)) * 0x94D049BB133111EBu;
  return state ^ (state >> 31);
}
inline uint64_t token_noise(uint64_t key, int32_t id) {
  return noise_of_state(key + (static_cast<uint64_t>(id) + 1) * kNoiseStep);
}
// The least of `count` > 0 tokens from `first_id` on.
uint64_t least_noise(uint64_t key, int32_t first_id, int64_t count);

// Exponentially distributed with mean 1 if the bits are uniform, and increasing with them:
// -log(1 - (noise + 1/2) / 2^64), the same double on every machine.
double exponential_time(uint64_t noise);

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
