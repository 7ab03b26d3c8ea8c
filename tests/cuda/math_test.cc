// The functions and conversions of kernels for GPUs, which have no instruction of their own:
// against libm in double, and the CPU's conversions bit for bit.
#include "kernels/cuda/code/math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "tensor/dtype.h"

namespace paceline::cuda::testing {
namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int kGrid = 100000;

// The distance from the exact value in units in the last place.
double ulps(float value, double exact) {
  const auto rounded = static_cast<float>(exact);
  if (value == rounded) return 0.0;
  const float next = std::nextafter(std::abs(rounded), kInfinite);
  return std::abs(double{value} - exact) / (double{next} - std::abs(double{rounded}));
}

template <class Function, class Exact>
double worst_ulps(float low, float high, Function&& function, Exact&& exact) {
  double worst = 0.0;
  for (int i = 0; i <= kGrid; ++i) {
    const float x = low + (high - low) * static_cast<float>(i) / kGrid;
    worst = std::max(worst, ulps(function(x), exact(double{x})));
  }
  return worst;
}

TEST(CudaMath, Exponential) {
  const auto exact = [](double x) { return std::exp(x); };
  EXPECT_LE(worst_ulps(-87.3f, 88.7f, exponential, exact), 1.25);
  EXPECT_LE(worst_ulps(-1.0f, 1.0f, exponential, exact), 1.25);
  EXPECT_EQ(exponential(0.0f), 1.0f);
  EXPECT_EQ(exponential(-88.0f), 0.0f);  // below the normal range
  EXPECT_EQ(exponential(-kInfinite), 0.0f);
  EXPECT_EQ(exponential(89.0f), kInfinite);
  EXPECT_EQ(exponential(1e30f), kInfinite);
  EXPECT_EQ(exponential(kInfinite), kInfinite);
  EXPECT_TRUE(std::isnan(exponential(kNan)));
}

TEST(CudaMath, PowersOfTwo) {
  const auto exact = [](double x) { return std::exp2(x); };
  EXPECT_LE(worst_ulps(-126.0f, 1.0f, power_of_two, exact), 1.25);
  EXPECT_LE(worst_ulps(-1.0f, 1.0f, power_of_two, exact), 1.25);
  EXPECT_LE(worst_ulps(-126.0f, 1.0f, rough_power_of_two, exact), 2.9e-6 * 0x1p24);
  EXPECT_LE(worst_ulps(-1.0f, 1.0f, rough_power_of_two, exact), 2.9e-6 * 0x1p24);
  for (const auto function : {power_of_two, rough_power_of_two}) {
    EXPECT_EQ(function(0.0f), 1.0f);
    EXPECT_EQ(function(-126.0f), 0x1p-126f);
    for (const float x : {-126.6f, -127.0f, -127.4f, -200.0f, -1e30f, -kInfinite}) {
      EXPECT_EQ(bits_of_float(function(x)), 0u) << x;
    }
    EXPECT_TRUE(std::isnan(function(kNan)));
    EXPECT_TRUE(std::isnan(function(-kNan)));
  }
}

TEST(CudaMath, HyperbolicTangentAndErrorFunction) {
  EXPECT_LE(worst_ulps(-9.0f, 9.0f, hyperbolic_tangent, [](double x) { return std::tanh(x); }),
            2.0);
  EXPECT_LE(worst_ulps(-4.5f, 4.5f, error_function, [](double x) { return std::erf(x); }), 2.5);
  for (const auto function : {hyperbolic_tangent, error_function}) {
    EXPECT_EQ(function(0.0f), 0.0f);
    EXPECT_EQ(function(kInfinite), 1.0f);
    EXPECT_EQ(function(-kInfinite), -1.0f);
    EXPECT_TRUE(std::isnan(function(kNan)));
  }
}

TEST(CudaMath, LogarithmSineAndCosineInDouble) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  for (int i = 0; i < kGrid; ++i) {
    const double x = std::exp2(100.0 * uniform(random));
    ASSERT_NEAR(logarithm(x), std::log(x), 1e-15 * (1.0 + std::abs(std::log(x)))) << x;
    const double angle = uniform(random) * (i % 2 == 0 ? 100.0 : 0x1p22);
    const SinCos found = sin_cos(angle);
    ASSERT_NEAR(found.sin, std::sin(angle), 2.1e-14) << angle;
    ASSERT_NEAR(found.cos, std::cos(angle), 2.1e-14) << angle;
  }
  EXPECT_EQ(logarithm(1.0), 0.0);
  EXPECT_EQ(logarithm(0.0), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(logarithm(std::numeric_limits<double>::infinity()),
            std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(logarithm(double{kNan})));
}

TEST(CudaMath, ConversionsAreTheCpus) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    ASSERT_EQ(bits_of_float(to_float(F16{half})), bits_of_float(paceline::to_float(Float16{half})))
        << bits;
    ASSERT_EQ(bits_of_float(to_float(Bf16{half})),
              bits_of_float(paceline::to_float(BFloat16{half})))
        << bits;
  }
  std::mt19937 random(2);
  for (uint32_t i = 0; i < 1000000; ++i) {
    // Random bits, and those about the middle between two values of 16 bits.
    const uint32_t bits = i % 2 == 0 ? random() : (random() & 0xFFFFF000u) + i % 5 - 2;
    const float value = float_of_bits(bits);
    ASSERT_EQ(to_f16(value).bits, to_float16(value).bits) << bits;
    ASSERT_EQ(to_bf16(value).bits, to_bfloat16(value).bits) << bits;
  }
  EXPECT_EQ(pack_bf16(1.0f, -2.0f), 0xC0003F80u);
}

}  // namespace
}  // namespace paceline::cuda::testing
