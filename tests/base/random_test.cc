#include "base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <set>

#include "tests/test_scale.h"

namespace paceline {
namespace {

using Words = std::array<uint32_t, 4>;

uint64_t joined(uint32_t low, uint32_t high) { return (uint64_t{high} << 32) | low; }

// The counter and key order of the Random123 library.
Words philox(const Words& counter, uint32_t key0, uint32_t key1) {
  return philox4x32(joined(key0, key1), joined(counter[0], counter[1]),
                    joined(counter[2], counter[3]));
}

// 32 x 32 bit product by schoolbook on 16-bit halves: (low, high).
std::pair<uint32_t, uint32_t> long_product(uint32_t a, uint32_t b) {
  const uint32_t a0 = a & 0xFFFF, a1 = a >> 16, b0 = b & 0xFFFF, b1 = b >> 16;
  const uint32_t low = a0 * b0, mid0 = a1 * b0, mid1 = a0 * b1, top = a1 * b1;
  const uint32_t carry = (low >> 16) + (mid0 & 0xFFFF) + (mid1 & 0xFFFF);
  return {(carry << 16) | (low & 0xFFFF), top + (mid0 >> 16) + (mid1 >> 16) + (carry >> 16)};
}

// The definition of the paper, section 3.3, as a recursion over rounds on (L0, R0), (L1, R1).
Words philox_oracle(Words c, uint32_t key0, uint32_t key1, int round = 0) {
  if (round == 10) return c;
  const uint32_t round_key0 = key0 + static_cast<uint32_t>(round) * 0x9E3779B9u;
  const uint32_t round_key1 = key1 + static_cast<uint32_t>(round) * 0xBB67AE85u;
  const auto [low0, high0] = long_product(c[0], 0xD2511F53u);
  const auto [low1, high1] = long_product(c[2], 0xCD9E8D57u);
  return philox_oracle({high1 ^ c[1] ^ round_key0, low1, high0 ^ c[3] ^ round_key1, low0}, key0,
                       key1, round + 1);
}

// The three vectors that Random123 publishes for philox4x32 with 10 rounds (kat_vectors).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffff, 0xffffffff),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, AgreesWithTheDefinition) {
  std::mt19937 random(7);
  const auto word = [&] { return static_cast<uint32_t>(random()); };
  const int num_rounds = scaled(20'000, 2'000'000);
  for (int i = 0; i < num_rounds; ++i) {
    const Words counter = {word(), word(), word(), word()};
    const uint32_t key0 = word(), key1 = word();
    ASSERT_EQ(philox(counter, key0, key1), philox_oracle(counter, key0, key1));
  }
}

TEST(Philox, EveryArgumentMatters) {
  const Words base = philox4x32(1, 2, 3);
  EXPECT_NE(philox4x32(2, 2, 3), base);
  EXPECT_NE(philox4x32(1, 3, 3), base);
  EXPECT_NE(philox4x32(1, 2, 4), base);
  EXPECT_NE(philox4x32(1 + (uint64_t{1} << 32), 2, 3), base);
  EXPECT_NE(philox4x32(1, 2 + (uint64_t{1} << 32), 3), base);
  EXPECT_NE(philox4x32(1, 2, 3 + (uint64_t{1} << 32)), base);
  EXPECT_EQ(philox4x32(1, 2), philox4x32(1, 2, 0));
}

TEST(UniformDraw, IsTheTop53BitsOfTheFirstTwoWords) {
  for (uint64_t i = 0; i < 1000; ++i) {
    const Words words = philox4x32(42, i);
    const double numerator = uniform_draw(42, i) * 0x1p53;
    ASSERT_EQ(numerator, static_cast<double>(joined(words[1], words[0]) >> 11));
  }
}

TEST(UniformDraw, IsUniformOnTheUnitInterval) {
  constexpr int kDraws = 200'000, kBins = 64;
  std::array<int, kBins> counts{};
  std::set<double> distinct;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const double draw = uniform_draw(i % 2, i);
    ASSERT_GE(draw, 0.0);
    ASSERT_LT(draw, 1.0);
    ++counts[static_cast<size_t>(draw * kBins)];
    distinct.insert(draw);
  }
  EXPECT_EQ(distinct.size(), static_cast<size_t>(kDraws));
  double chi_square = 0;
  constexpr double kExpected = static_cast<double>(kDraws) / kBins;
  for (int count : counts) chi_square += (count - kExpected) * (count - kExpected) / kExpected;
  EXPECT_LT(chi_square, 120.0);  // 63 degrees of freedom: mean 63, deviation 11
  EXPECT_GT(chi_square, 25.0);
}

}  // namespace
}  // namespace paceline
