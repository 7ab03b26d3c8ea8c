// The sum of squares of float32 elements, in double.
#pragma once

#include <array>
#include <cstdint>

namespace paceline {

// Element i is added to sum i % 8, ascending: one sum would wait for each addition.
inline double sum_of_squares(const float* elements, int64_t count) {
  constexpr int64_t kSums = 8;
  std::array<double, kSums> sums{};
  int64_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (int64_t k = 0; k < kSums; ++k) {
      const auto element = double{elements[i + k]};
      sums[static_cast<size_t>(k)] += element * element;
    }
  }
  for (; i < count; ++i) {
    const auto element = double{elements[i]};
    sums[static_cast<size_t>(i % kSums)] += element * element;
  }
  double total = 0.0;
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace paceline
