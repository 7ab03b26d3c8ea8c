// Our own exp, tanh, erf, sin, cos and log against libm's double ones on dense grids.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/isa.h"
#include "tests/kernels/every_isa.h"

namespace paceline {
namespace {

class Math : public testing::TestWithParam<Isa> {
 protected:
  const KernelTable& kernels_ = kernel_table(GetParam());
};

// The distance in units in the last place of the correctly rounded value.
double ulps(float value, double exact) {
  const auto rounded = static_cast<float>(exact);
  if (value == rounded) return 0.0;
  const float next = std::nextafter(std::abs(rounded), std::numeric_limits<float>::infinity());
  return std::abs(double{value} - exact) / (double{next} - std::abs(double{rounded}));
}

std::vector<float> grid(float low, float high, int count) {
  std::vector<float> values;
  for (int i = 0; i <= count; ++i) {
    values.push_back(low + (high - low) * static_cast<float>(i) / static_cast<float>(count));
  }
  return values;
}

template <class Function, class Exact>
double worst_ulps(const std::vector<float>& x, Function&& function, Exact&& exact) {
  std::vector<float> result(x.size());
  function(x.data(), static_cast<int64_t>(x.size()), result.data());
  double worst = 0.0;
  for (size_t i = 0; i < x.size(); ++i)
    worst = std::max(worst, ulps(result[i], exact(double{x[i]})));
  return worst;
}

constexpr int kGrid = 200000;

// exp(x) for x <= 0 is the weight of a partial sum below the largest.
TEST_P(Math, Exp) {
  const auto exp = [&](const float* x, int64_t n, float* out) {
    for (int64_t i = 0; i < n; ++i) {
      const ExpSum parts[] = {{.max = 0.0f, .sum = 0.0f}, {.max = x[i], .sum = 1.0f}};
      out[i] = kernels_.combine_exp_sums(parts, 2).sum;
    }
  };
  const auto exact = [](double x) { return std::exp(x); };
  const double most = GetParam() == Isa::baseline ? 2.0 : 1.25;
  EXPECT_LE(worst_ulps(grid(-87.3f, 0.0f, kGrid), exp, exact), most);
  EXPECT_LE(worst_ulps(grid(-1.0f, 0.0f, kGrid), exp, exact), most);
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> edges = {0.0f, -0.0f, -infinity, -87.4f, -1e30f};
  std::vector<float> result(edges.size());
  exp(edges.data(), static_cast<int64_t>(edges.size()), result.data());
  EXPECT_EQ(result, (std::vector<float>{1, 1, 0, 0, 0}));
}

// tanh is a soft cap of one.
TEST_P(Math, Tanh) {
  const auto tanh = [&](const float* x, int64_t n, float* out) {
    kernels_.soft_cap(x, 1.0f, n, out);
  };
  const auto exact = [](double x) { return std::tanh(x); };
  EXPECT_LE(worst_ulps(grid(-12.0f, 12.0f, kGrid), tanh, exact), 2.5);
  EXPECT_LE(worst_ulps(grid(-0.7f, 0.7f, kGrid), tanh, exact), 2.5);
  EXPECT_LE(worst_ulps(grid(-1e-6f, 1e-6f, 1000), tanh, exact), 1.0);
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> edges = {-infinity, infinity, 100.0f, -100.0f};
  std::vector<float> result(edges.size());
  tanh(edges.data(), static_cast<int64_t>(edges.size()), result.data());
  EXPECT_EQ(result, (std::vector<float>{-1, 1, 1, -1}));
}

// The gates with 1 as the other factor; absolute, as they end in x (1 + something near -1).
TEST_P(Math, Gates) {
  const std::vector<float> x = grid(-20.0f, 20.0f, kGrid), ones(x.size(), 1.0f);
  const auto worst = [&](Activation kind, auto&& exact) {
    std::vector<float> result(x.size());
    kernels_.gated_activation[static_cast<size_t>(kind)](
        x.data(), ones.data(), static_cast<int64_t>(x.size()), result.data());
    double largest = 0.0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double wanted = exact(double{x[i]});
      largest = std::max(largest, std::abs(double{result[i]} - wanted) / (1.0 + std::abs(wanted)));
    }
    return largest;
  };
  const double root = std::sqrt(2.0 / std::acos(-1.0));
  EXPECT_LE(worst(Activation::silu, [](double v) { return v / (1.0 + std::exp(-v)); }), 1.5e-7);
  EXPECT_LE(worst(Activation::gelu_tanh,
                  [&](double v) {
                    return 0.5 * v * (1.0 + std::tanh(root * (v + 0.044715 * v * v * v)));
                  }),
            4e-7);
  EXPECT_LE(worst(Activation::gelu_erf,
                  [](double v) { return 0.5 * v * std::erfc(-v / std::sqrt(2.0)); }),
            4e-7);
}

TEST_P(Math, SinAndCosOfAnyAngle) {
  const float one = 1.0f;
  double worst = 0.0;
  for (const float high : {7.0f, 3000.0f, 1048576.0f}) {
    for (const float angle : grid(0.0f, high, kGrid / 4)) {
      float pair[2];
      kernels_.rope_table(angle, &one, 1, 1.0f, pair);
      worst = std::max(worst, std::abs(double{pair[0]} - std::cos(double{angle})));
      worst = std::max(worst, std::abs(double{pair[1]} - std::sin(double{angle})));
    }
  }
  EXPECT_LE(worst, 3.0e-8);  // half a unit in the last place of 1
}

// The logarithm is that of a row of one exponential sum.
TEST_P(Math, Log) {
  double worst = 0.0;
  for (int i = 0; i < kGrid; ++i) {
    const float sum = std::exp(static_cast<float>(i) * 2e-4f);
    worst =
        std::max(worst, ulps(kernels_.log_sum({.max = 0.0f, .sum = sum}), std::log(double{sum})));
  }
  EXPECT_LE(worst, 0.5001);
}

PL_TEST_EVERY_ISA(Math);

}  // namespace
}  // namespace paceline
