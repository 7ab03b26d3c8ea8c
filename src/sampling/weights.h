// Weigher turns logits into weights proportional to their probabilities: integers, so sums are
// exact.
#pragma once

#include <cstdint>

namespace paceline {

// The weight of the largest logit. A weight is round(kWeightOne * exp((logit - max) /
// temperature)): a token less likely than the likeliest by more than a factor of 2^44 can't be
// drawn. Integer sums don't depend on their order, and so neither do cuts and draws.
constexpr int kWeightBits = 43;
constexpr uint64_t kWeightOne = uint64_t{1} << kWeightBits;
// Sums of this many weights stay below 2^63.
constexpr int64_t kMaxWeights = int64_t{1} << 20;

// fraction * whole, rounded up, at least 1; fraction in [0, 1], whole below 2^63.
uint64_t share_of(float fraction, uint64_t whole);

// Weights depend on logit, max and temperature alone, with the same bits on every instruction set.
class Weigher {
 public:
  // `max` is finite and no logit is larger; `temperature` > 0.
  Weigher(float max, float temperature);

  // 64 logits at a time; -inf weighs 0.
  void weigh_block(const float* logits, uint64_t* weights) const;
  uint64_t sum_block(const float* logits) const;

  // A bound from below, by a small margin, of the logits whose weight reaches fraction *
  // kWeightOne.
  float cutoff(double fraction) const;

 private:
  float max_;
  float temperature_;
  float scale_;  // log2(e) / temperature
};

}  // namespace paceline
