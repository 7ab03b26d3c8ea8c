// Splits by fraction, and the random orders that they and shuffles come from.
#include "dataset/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "dataset/random_order.h"
#include "tests/expect_error.h"

namespace paceline {
namespace {

using testing::ElementsAre;

std::vector<Example> numbered(int32_t count) {
  std::vector<Example> examples;
  for (int32_t i = 0; i < count; ++i) examples.push_back({.tokens = {i, i}, .counts = {0, 1}});
  return examples;
}

std::vector<int32_t> numbers_of(const std::vector<Example>& examples) {
  std::vector<int32_t> numbers;
  for (const Example& example : examples) numbers.push_back(example.tokens[0]);
  return numbers;
}

TEST(SplitTest, PutsEachExampleOnOneSideInItsOrder) {
  for (const int32_t count : {2, 3, 10, 100}) {
    for (const double fraction : {1e-9, 0.1, 0.5, 0.9, 1 - 1e-9}) {
      for (uint64_t seed = 0; seed < 20; ++seed) {
        const ExampleSplit split = split_examples(numbered(count), fraction, seed);
        const std::vector<int32_t> train = numbers_of(split.train), valid = numbers_of(split.valid);
        EXPECT_TRUE(std::is_sorted(train.begin(), train.end()));
        EXPECT_TRUE(std::is_sorted(valid.begin(), valid.end()));
        std::vector<int32_t> both;
        std::merge(train.begin(), train.end(), valid.begin(), valid.end(),
                   std::back_inserter(both));
        EXPECT_EQ(both, numbers_of(numbered(count)));
        EXPECT_FALSE(train.empty());
        EXPECT_EQ(static_cast<int64_t>(valid.size()),
                  std::clamp<int64_t>(std::llround(fraction * count), 1, count - 1));
        EXPECT_EQ(numbers_of(split_examples(numbered(count), fraction, seed).valid), valid);
      }
    }
  }
  EXPECT_NE(numbers_of(split_examples(numbered(100), 0.1, 1).valid),
            numbers_of(split_examples(numbered(100), 0.1, 2).valid));
}

TEST(SplitTest, NamesWhatCannotBeSplit) {
  for (const double fraction : {0.0, 1.0, -0.1, 2.0, std::nan("")}) {
    expect_error(ErrorCode::invalid, {"fraction of examples for validation", "above 0 and below 1"},
                 [&] { split_examples(numbered(10), fraction, 0); });
  }
  for (const int32_t count : {0, 1}) {
    expect_error(ErrorCode::invalid, {"examples to split for validation, expected at least 2"},
                 [&] { split_examples(numbered(count), 0.5, 0); });
  }
}

TEST(RandomOrderTest, IsAPermutationOfItsSeedAndStream) {
  EXPECT_TRUE(random_order(0, 1, 2).empty());
  EXPECT_THAT(random_order(1, 1, 2), ElementsAre(0));
  std::vector<int64_t> order = random_order(1000, 1, 2);
  EXPECT_EQ(order, random_order(1000, 1, 2));
  EXPECT_NE(order, random_order(1000, 1, 3));
  EXPECT_NE(order, random_order(1000, 2, 2));
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (int64_t i = 0; i < 1000; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

// Each of the 24 orders of 4 within 5 standard deviations of its share.
TEST(RandomOrderTest, DrawsAllOrdersEquallyOften) {
  constexpr int kDraws = 24'000;
  std::array<int, 256> counts{};
  for (int seed = 0; seed < kDraws; ++seed) {
    const std::vector<int64_t> order = random_order(4, static_cast<uint64_t>(seed), 7);
    ++counts[static_cast<size_t>(order[0] * 64 + order[1] * 16 + order[2] * 4 + order[3])];
  }
  const double share = kDraws / 24.0, deviation = std::sqrt(share * 23 / 24);
  int num_orders = 0;
  for (const int count : counts) {
    if (count == 0) continue;
    ++num_orders;
    EXPECT_NEAR(count, share, 5 * deviation);
  }
  EXPECT_EQ(num_orders, 24);
}

}  // namespace
}  // namespace paceline
