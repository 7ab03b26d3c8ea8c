#include "server/histogram.h"

#include <algorithm>

namespace paceline {

Histogram::Histogram(std::span<const double> bounds)
    : bounds_(bounds.begin(), bounds.end()), counts_(bounds.size() + 1, 0) {}

void Histogram::observe(double value) {
  const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  ++counts_[static_cast<size_t>(bucket)];
  ++count_;
  sum_ += value;
}

std::optional<double> Histogram::quantile(double share) const {
  if (count_ == 0) return std::nullopt;
  const double wanted = share * static_cast<double>(count_);
  double below = 0;
  for (size_t i = 0; i < bounds_.size(); ++i) {
    const auto here = static_cast<double>(counts_[i]);
    if (here > 0 && below + here >= wanted) {
      const double from = i == 0 ? 0 : bounds_[i - 1];
      return from + (bounds_[i] - from) * (wanted - below) / here;
    }
    below += here;
  }
  return bounds_.back();
}

std::span<const double> latency_bounds() {
  static constexpr double kBounds[] = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06,  0.08,
                                       0.1,   0.25,  0.5,  0.75, 1.0,  2.5,   5.0,
                                       7.5,   10.0,  20.0, 40.0, 80.0, 160.0, 640.0};
  return kBounds;
}

std::span<const double> short_latency_bounds() {
  static constexpr double kBounds[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1,
                                       0.15,   0.2,   0.3,    0.4,   0.5,  0.75,  1.0,  2.5};
  return kBounds;
}

std::span<const double> token_time_bounds() {
  static constexpr double kBounds[] = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2,  0.3,  0.4, 0.5,
                                       0.75, 1.0,   2.5,  5.0,   7.5, 10.0, 20.0, 40.0, 80.0};
  return kBounds;
}

std::span<const double> token_count_bounds() {
  static constexpr double kBounds[] = {1,     2,      5,      10,     20,     50,    100,
                                       200,   500,    1000,   2000,   5000,   10000, 20000,
                                       50000, 100000, 200000, 500000, 1000000};
  return kBounds;
}

std::span<const double> step_tokens_bounds() {
  static constexpr double kBounds[] = {1,   8,    16,   32,   64,   128,  256,
                                       512, 1024, 2048, 4096, 8192, 16384};
  return kBounds;
}

std::span<const double> num_choices_bounds() {
  static constexpr double kBounds[] = {1, 2, 5, 10, 20};
  return kBounds;
}

}  // namespace paceline
