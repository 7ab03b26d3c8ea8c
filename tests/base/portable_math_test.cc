#include "base/portable_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace paceline {
namespace {

TEST(PortableMath, SineAndCosineAreWithinTheirBounds) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  for (int i = 0; i < 100'000; ++i) {
    const double size = i % 3 == 0 ? 10.0 : i % 3 == 1 ? 4e6 : 0x1p31;
    const double angle = size * uniform(random);
    const double bound = std::abs(angle) <= 4e6 ? 2.1e-14 : 1.3e-7;
    const SinCos found = portable_sin_cos(angle);
    ASSERT_NEAR(found.sin, std::sin(angle), bound) << angle;
    ASSERT_NEAR(found.cos, std::cos(angle), bound) << angle;
  }
  EXPECT_EQ(portable_sin_cos(0.0).sin, 0.0);
  EXPECT_EQ(portable_sin_cos(0.0).cos, 1.0);
}

TEST(PortableMath, LogarithmIsWithinAnUlpOrSo) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> exponent(-1000.0, 1000.0), near_one(0.5, 2.0);
  for (int i = 0; i < 100'000; ++i) {
    const double x = i % 2 == 0 ? std::exp2(exponent(random)) : near_one(random);
    ASSERT_NEAR(portable_log(x), std::log(x), 1e-15 * (1.0 + std::abs(std::log(x)))) << x;
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(portable_log(1.0), 0.0);
  EXPECT_EQ(portable_log(0.0), -kInfinity);
  EXPECT_EQ(portable_log(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(portable_log(std::numeric_limits<double>::quiet_NaN())));
}

}  // namespace
}  // namespace paceline
