#include "cli/plot_scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace paceline {
namespace {

using testing::Pointwise;

testing::Matcher<const std::vector<double>&> near(const std::vector<double>& values) {
  return Pointwise(testing::DoubleNear(1e-6), values);
}

TEST(TickDistance, IsOneTwoOrFiveTimesAPowerOfTen) {
  EXPECT_DOUBLE_EQ(tick_distance(1200, 12), 100);
  EXPECT_DOUBLE_EQ(tick_distance(1201, 12), 200);
  EXPECT_DOUBLE_EQ(tick_distance(3, 12), 0.5);
  EXPECT_DOUBLE_EQ(tick_distance(0, 12), 1);
  for (int step = -20; step < 40; ++step) {
    const double span = std::pow(1.7, step);
    const double distance = tick_distance(span, 10);
    EXPECT_LE(span / distance, 10 + 1e-6) << span;
    EXPECT_GE(span / distance, 3.9) << span;
  }
}

TEST(LogScale, EndsAreRoundAndHoldEveryValue) {
  const LogScale scale({3, 40, 700}, 100, 500);
  EXPECT_DOUBLE_EQ(scale.low(), 2);
  EXPECT_DOUBLE_EQ(scale.high(), 1000);
  EXPECT_DOUBLE_EQ(scale.at(2), 100);
  EXPECT_DOUBLE_EQ(scale.at(1000), 500);
  EXPECT_NEAR(scale.at(std::sqrt(2000)), 300, 1e-9);
  EXPECT_DOUBLE_EQ(scale.at(0), 100);
  EXPECT_DOUBLE_EQ(scale.at(1e9), 500);
  EXPECT_THAT(scale.ticks(), near({10, 100, 1000}));
  EXPECT_THAT(LogScale({3, 30}, 0, 1).ticks(), near({2, 5, 10, 20, 50}));
}

TEST(LogScale, WorksWithoutValuesAndWithOne) {
  EXPECT_THAT(LogScale({}, 0, 1).ticks(), near({1, 2, 5, 10}));
  EXPECT_THAT(LogScale({0, -1, NAN, INFINITY}, 0, 1).ticks(), near({1, 2, 5, 10}));
  EXPECT_THAT(LogScale({5}, 0, 1).ticks(), near({5, 10}));
}

TEST(LogScale, HasAtMostEightTicks) {
  for (int power = 1; power < 60; ++power) {
    const double most = std::pow(3.0, power);
    const auto ticks = LogScale({1, most}, 0, 1).ticks();
    EXPECT_LE(ticks.size(), 8u);
    EXPECT_GE(ticks.size(), 2u);
  }
}

TEST(WithoutZeros, KeepsNumberAndUnit) {
  EXPECT_EQ(without_zeros("10.0 ms"), "10 ms");
  EXPECT_EQ(without_zeros("1.00 TOP/s"), "1 TOP/s");
  EXPECT_EQ(without_zeros("0.500"), "0.5");
  EXPECT_EQ(without_zeros("1,000"), "1,000");
  EXPECT_EQ(without_zeros("100 GB/s"), "100 GB/s");
}

}  // namespace
}  // namespace paceline
