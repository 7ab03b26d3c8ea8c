#include "base/checked.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

#include "tests/test_scale.h"

namespace paceline {
namespace {

__extension__ using Wide = unsigned __int128;
constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

std::optional<uint64_t> narrowed(Wide value) {
  if (value > kMax) return std::nullopt;
  return static_cast<uint64_t>(value);
}

TEST(Checked, AgreesWithWideArithmetic) {
  std::mt19937_64 random(3);
  int overflows = 0;
  const int num_rounds = scaled(100'000, 10'000'000);
  for (int i = 0; i < num_rounds; ++i) {
    const uint64_t a = random() >> (random() % 64), b = random() >> (random() % 64);
    ASSERT_EQ(checked_add(a, b), narrowed(Wide{a} + b));
    ASSERT_EQ(checked_mul(a, b), narrowed(Wide{a} * b));
    overflows += checked_mul(a, b) ? 0 : 1;
  }
  EXPECT_GT(overflows, num_rounds / 100);
  EXPECT_LT(overflows, num_rounds / 100 * 99);
}

TEST(Checked, Limits) {
  EXPECT_EQ(checked_add(kMax, 0), kMax);
  EXPECT_EQ(checked_add(kMax, 1), std::nullopt);
  EXPECT_EQ(checked_mul(kMax, 1), kMax);
  EXPECT_EQ(checked_mul(uint64_t{1} << 32, uint64_t{1} << 32), std::nullopt);
  EXPECT_EQ(checked_mul(0xFFFFFFFF, 0x100000001), kMax);
}

TEST(Checked, ProductOfMany) {
  const std::vector<uint64_t> none, small = {2, 3, 7}, large = {uint64_t{1} << 40, 1 << 20, 16};
  const std::vector<uint64_t> exact = {uint64_t{1} << 40, 1 << 20, 8};
  EXPECT_EQ(checked_product(none), 1u);
  EXPECT_EQ(checked_product(small), 42u);
  EXPECT_EQ(checked_product(exact), uint64_t{1} << 63);
  EXPECT_EQ(checked_product(large), std::nullopt);
  // A zero doesn't excuse what overflowed before it.
  EXPECT_EQ(checked_product(std::vector<uint64_t>{kMax, 2, 0}), std::nullopt);
  EXPECT_EQ(checked_product(std::vector<uint64_t>{0, kMax, 2}), 0u);
}

}  // namespace
}  // namespace paceline
