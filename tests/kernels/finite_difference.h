// Compares gradients with differences of the loss, in double.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tensor/tensor.h"
#include "tests/kernels/op_inputs.h"

namespace paceline {

// The sum of weights[i] * values[i]: a loss whose gradient by the values are the weights.
inline double weighted_sum(const Tensor& values, const Tensor& weights) {
  const std::vector<float> of_values = to_vector(values), of_weights = to_vector(weights);
  double sum = 0.0;
  for (size_t i = 0; i < of_values.size(); ++i) sum += double{of_values[i]} * double{of_weights[i]};
  return sum;
}

// Moves x (contiguous) a little along random directions, both ways. The loss must change as the
// gradient says, but for `tolerance` times what a random gradient of that size would make.
inline void expect_gradient(const std::string& what, const Tensor& x, const Tensor& gradient,
                            const std::function<double()>& loss, double tolerance = 2e-3,
                            float step = 5e-3f) {
  float* const elements = x.elements<float>();
  const std::vector<float> before = to_vector(x), slopes = to_vector(gradient);
  double square = 0.0;
  for (const float slope : slopes) square += double{slope} * double{slope};
  ASSERT_GT(square, 0.0) << what;
  for (uint64_t direction = 0; direction < 5; ++direction) {
    Draws draws(1000 + direction);
    std::vector<double> change(before.size());
    std::vector<float> low(before.size());
    for (size_t i = 0; i < before.size(); ++i) {
      const float move = step * draws.uniform(-1.0f, 1.0f);
      low[i] = before[i] - move;
      elements[i] = before[i] + move;
      change[i] = double{elements[i]} - double{low[i]};
    }
    const double high_loss = loss();
    std::copy(low.begin(), low.end(), elements);
    const double low_loss = loss();
    std::copy(before.begin(), before.end(), elements);
    double expected = 0.0;
    for (size_t i = 0; i < change.size(); ++i) expected += change[i] * double{slopes[i]};
    const double usual = std::sqrt(square) * double{step};
    EXPECT_NEAR(high_loss - low_loss, expected, tolerance * usual) << what << " " << direction;
  }
}

}  // namespace paceline
