// Pearson's test of counts against weights.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

namespace paceline {

// The quantile of chi-square that one of 100,000 good samples exceeds, by the approximation of
// Wilson and Hilferty (1931).
inline double chi_square_limit(double degrees) {
  constexpr double kNormalQuantile = 4.265;
  const double part = 2.0 / (9.0 * degrees);
  return degrees * std::pow(1.0 - part + kNormalQuantile * std::sqrt(part), 3.0);
}

// The statistic over its limit: above 1 for counts that don't follow the weights, infinite for a
// count where the weight is 0. Cells with fewer than 10 expected are counted as one.
inline double misfit(std::span<const int64_t> counts, std::span<const double> weights) {
  double total_count = 0, total_weight = 0;
  for (const int64_t count : counts) total_count += static_cast<double>(count);
  for (const double weight : weights) total_weight += weight;
  double statistic = 0, rare_count = 0, rare_mean = 0;
  int num_cells = 0;
  const auto add = [&](double count, double mean) {
    statistic += (count - mean) * (count - mean) / mean;
    ++num_cells;
  };
  for (size_t i = 0; i < counts.size(); ++i) {
    const auto count = static_cast<double>(counts[i]);
    const double mean = weights[i] / total_weight * total_count;
    if (mean == 0 && count > 0) return std::numeric_limits<double>::infinity();
    if (mean >= 10) {
      add(count, mean);
    } else {
      rare_count += count;
      rare_mean += mean;
    }
  }
  if (rare_mean >= 5) add(rare_count, rare_mean);
  return num_cells < 2 ? 0.0 : statistic / chi_square_limit(num_cells - 1);
}

}  // namespace paceline
