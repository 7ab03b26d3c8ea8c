// New arrays, of given values and of random ones.
#include "autodiff/new_arrays.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "autodiff/elementwise.h"
#include "base/random.h"
#include "tests/expect_error.h"

namespace paceline::autodiff {
namespace {

class NewArrays : public testing::Test {
 protected:
  Memory memory_;
  Context context_{memory_};
};

TEST_F(NewArrays, OfGivenValues) {
  EXPECT_EQ(to_floats(ones(context_, {3}, DType::bf16)), std::vector<float>(3, 1.0f));
  EXPECT_EQ(to_floats(zeros(context_, {2})), std::vector<float>(2, 0.0f));
  const float numbers[] = {1.0f, 2.0f, 3.0f};
  EXPECT_EQ(to_floats(from_values(context_, numbers, {3, 1}, DType::f16)),
            (std::vector<float>{1.0f, 2.0f, 3.0f}));
  const uint8_t mask_values[] = {0, 7};
  EXPECT_EQ(to_floats(from_mask(context_, mask_values, {2})), (std::vector<float>{0.0f, 1.0f}));
  expect_error(ErrorCode::invalid, {"from_values", "[2]", "2 values, found 3"},
               [&] { from_values(context_, numbers, {2}); });
}

TEST_F(NewArrays, EveryByteIsAccounted) {
  {
    const Array x = zeros(context_, {1024});
    EXPECT_EQ(memory_.stats().active_bytes, 4096u);
    const Array half = ones(context_, {1024}, DType::bf16);
    EXPECT_EQ(memory_.stats().active_bytes, 6144u);
  }
  EXPECT_EQ(memory_.stats().active_bytes, 0u);
}

// Element i is a function of seed and counter + i / 4 alone.
TEST_F(NewArrays, DrawsAreAFunctionOfSeedAndCounter) {
  const auto words = philox4x32(7, 100);
  const std::vector<float> four = to_floats(uniform(context_, {4}, {7, 100}));
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(four[i], static_cast<float>(words[i] >> 8) * 0x1.0p-24f);
  }
  ThreadPool pool(3);
  const Context threaded{memory_, &pool};
  const auto draw = [](const Context& context, int64_t count, RandomKey key) {
    return to_floats(normal(context, {count}, key));
  };
  const std::vector<float> all = draw(context_, 10000, {3, 5});
  EXPECT_EQ(draw(threaded, 10000, {3, 5}), all);
  EXPECT_EQ(draw(context_, 10000 - 36, {3, 5 + 9}),
            std::vector<float>(all.begin() + 36, all.end()));
  EXPECT_EQ(draw(context_, 5, {3, 5}), std::vector<float>(all.begin(), all.begin() + 5));
  EXPECT_NE(draw(context_, 5, {4, 5}), std::vector<float>(all.begin(), all.begin() + 5));
  EXPECT_EQ(counters_of(9), 3u);
}

struct Moments {
  double mean = 0.0;
  double deviation = 0.0;
};

Moments moments(const std::vector<float>& values) {
  const auto count = static_cast<double>(values.size());
  Moments found;
  for (const float value : values) found.mean += double{value} / count;
  for (const float value : values) found.deviation += std::pow(value - found.mean, 2.0) / count;
  found.deviation = std::sqrt(found.deviation);
  return found;
}

TEST_F(NewArrays, UniformAndNormal) {
  const std::vector<float> even = to_floats(uniform(context_, {100000}, {1}, -1.0f, 3.0f));
  EXPECT_GE(*std::min_element(even.begin(), even.end()), -1.0f);
  EXPECT_LT(*std::max_element(even.begin(), even.end()), 3.0f);
  EXPECT_NEAR(moments(even).mean, 1.0, 0.02);
  EXPECT_NEAR(moments(even).deviation, 4.0 / std::sqrt(12.0), 0.01);

  const std::vector<float> pairs = to_floats(normal(context_, {100000}, {4}));
  double product = 0.0;  // neighbours share their words, and are independent all the same
  for (size_t i = 0; i < pairs.size(); i += 2) product += double{pairs[i]} * pairs[i + 1] / 5e4;
  EXPECT_NEAR(product, 0.0, 0.015);

  std::vector<float> bell = to_floats(normal(context_, {100000}, {2}, 5.0f, 2.0f));
  EXPECT_NEAR(moments(bell).mean, 5.0, 0.03);
  EXPECT_NEAR(moments(bell).deviation, 2.0, 0.02);
  // The largest distance of the distribution functions (Kolmogorov and Smirnov): 1.95 / sqrt(n) is
  // exceeded by one sample in a thousand.
  std::sort(bell.begin(), bell.end());
  double distance = 0.0;
  for (size_t i = 0; i < bell.size(); ++i) {
    const double expected = 0.5 * std::erfc(-(bell[i] - 5.0) / 2.0 / std::sqrt(2.0));
    distance = std::max(distance, std::abs(expected - static_cast<double>(i) / 1e5));
  }
  EXPECT_LT(distance, 1.95 / std::sqrt(1e5));

  const std::vector<float> weights = to_floats(kaiming_normal(context_, {50, 20, 40}, {3}));
  EXPECT_NEAR(moments(weights).deviation, std::sqrt(2.0 / 800.0), 0.001);
  EXPECT_NEAR(moments(weights).mean, 0.0, 0.001);
}

TEST_F(NewArrays, BoundsThatRoundingWouldReach) {
  const float low = 1.0f, high = std::nextafter(1.0f, 2.0f);
  for (const float value : to_floats(uniform(context_, {1000}, {1}, low, high))) {
    ASSERT_EQ(value, low);
  }
}

TEST_F(NewArrays, Categorical) {
  constexpr int64_t kRows = 60000;
  const float minus_infinity = -std::numeric_limits<float>::infinity();
  const float logits_values[] = {std::log(0.1f), minus_infinity, std::log(0.6f), std::log(0.3f)};
  const Array row = from_values(context_, logits_values, {1, 4});
  const Array logits = row.with_view(row.tensor().broadcast_to({kRows, 4}));
  const Array chosen = categorical(logits, {11});
  EXPECT_EQ(chosen.dtype(), DType::i32);
  std::vector<double> counts(4);
  for (const float index : to_floats(chosen)) counts.at(static_cast<size_t>(index)) += 1.0;
  EXPECT_EQ(counts[1], 0.0);
  double chi_square = 0.0;
  for (const auto& [i, share] : {std::pair<size_t, double>{0, 0.1}, {2, 0.6}, {3, 0.3}}) {
    const double expected = share * kRows;
    chi_square += std::pow(counts[i] - expected, 2.0) / expected;
  }
  EXPECT_LT(chi_square, 13.8);  // two degrees of freedom: one sample in a thousand is above
  EXPECT_EQ(to_floats(categorical(logits, {11})), to_floats(chosen));
}

TEST_F(NewArrays, Errors) {
  expect_error(ErrorCode::invalid, {"uniform", "from 1 to 1"},
               [&] { uniform(context_, {2}, {1}, 1.0f, 1.0f); });
  expect_error(ErrorCode::invalid, {"kaiming_normal", "[4]"},
               [&] { kaiming_normal(context_, {4}, {1}); });
  expect_error(ErrorCode::invalid, {"categorical", "[4]", "[rows, classes]"},
               [&] { categorical(zeros(context_, {4}), {1}); });
  const float bad_values[] = {0.0f, std::nanf("")};
  expect_error(ErrorCode::numerical, {"categorical", "row 0"}, [&] {
    categorical(from_values(context_, bad_values, {1, 2}), {1});
  });
}

}  // namespace
}  // namespace paceline::autodiff
