#include "traffic/load_client/samples.h"

#include <algorithm>
#include <cmath>

namespace paceline::traffic {
namespace {

constexpr double kLeast = 1e-6;
constexpr double kGrowth = 1.01;
constexpr size_t kNumBuckets = 2200;  // up to an hour

}  // namespace

Samples::Samples() : buckets_(kNumBuckets) {}

void Samples::add(double seconds) {
  const double steps = std::ceil(std::log(std::max(seconds, kLeast) / kLeast) / std::log(kGrowth));
  ++buckets_[std::min(static_cast<size_t>(steps), kNumBuckets - 1)];
  ++count_;
  most_ = std::max(most_, seconds);
}

double Samples::quantile(double share) const {
  const auto wanted = static_cast<int64_t>(std::ceil(share * static_cast<double>(count_)));
  int64_t below = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    below += buckets_[i];
    if (count_ > 0 && below >= std::max<int64_t>(wanted, 1)) {
      return std::min(kLeast * std::pow(kGrowth, static_cast<double>(i)), most_);
    }
  }
  return 0;
}

}  // namespace paceline::traffic
