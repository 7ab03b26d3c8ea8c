// Histogram counts observations below fixed bounds, as Prometheus defines histograms.
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
  // Interpolated within its bucket; nothing without observations.
  std::optional<double> quantile(double share) const;

 private:
  std::vector<double> bounds_;
  std::vector<int64_t> counts_;
  int64_t count_ = 0;
  double sum_ = 0;
};

// Seconds, of whole requests and of the gaps between tokens.
std::span<const double> latency_bounds();
std::span<const double> short_latency_bounds();
// Seconds per output token, tokens of a request, tokens of a step, and n, as vLLM has them.
std::span<const double> token_time_bounds();
std::span<const double> token_count_bounds();
std::span<const double> step_tokens_bounds();
std::span<const double> num_choices_bounds();

}  // namespace paceline
