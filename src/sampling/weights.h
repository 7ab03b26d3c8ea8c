// Weigher turns logits into weights proportional to their probabilities (base/sampling_math.h),
// many at a time.
#pragma once

#include <cstdint>

#include "base/sampling_math.h"

namespace paceline {

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
