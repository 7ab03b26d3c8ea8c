// Histogram counts observations below fixed bounds, as Prometheus wants them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace paceline {

class Histogram {
 public:
  // Ascending upper bounds; a last one without limit is added.
  explicit Histogram(std::span<const double> bounds);

  void observe(double value);

  std::span<const double> bounds() const { return bounds_; }
  std::span<const int64_t> counts() const {
    return counts_;
  }  // one more than bounds, not summed up
  int64_t count() const { return count_; }
  double sum() const { return sum_; }
  // About the value that such a share of the observations stays below, interpolated in its bucket;
  // nothing without observations.
  std::optional<double> quantile(double share) const;

 private:
  std::vector<double> bounds_;
  std::vector<int64_t> counts_;
  int64_t count_ = 0;
  double sum_ = 0;
};

// Seconds: those of vLLM's histograms of whole requests, and of single tokens.
std::span<const double> latency_bounds();
std::span<const double> short_latency_bounds();

}  // namespace paceline
