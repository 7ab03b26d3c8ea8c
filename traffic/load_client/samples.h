// Samples counts durations finely enough for quantiles, in memory that doesn't grow.
#pragma once

#include <cstdint>
#include <vector>

namespace paceline::traffic {

// Buckets of 1 %: a quantile is at most that much too high.
class Samples {
 public:
  Samples();

  void add(double seconds);
  int64_t count() const { return count_; }
  // The smallest duration that at least `share` of all samples don't exceed; 0 without samples.
  double quantile(double share) const;
  double most() const { return most_; }

 private:
  std::vector<int64_t> buckets_;
  int64_t count_ = 0;
  double most_ = 0;
};

}  // namespace paceline::traffic
