#include "sampling/race.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "tests/test_scale.h"

namespace paceline {
namespace {

// The key with which the token's noise is 0, the least: SplitMix64 gives 0 for the state 0.
uint64_t key_that_favours(int32_t id) { return 0 - (static_cast<uint64_t>(id) + 1) * kNoiseStep; }

TEST(Race, NoiseIsThatOfSplitMix64) {
  // The published outputs for the seed 1234567.
  const std::vector<uint64_t> published = {6457827717110365317u, 3203168211198807973u,
                                           9817491932198370423u, 4593380528125082431u,
                                           16408922859458223821u};
  for (size_t i = 0; i < published.size(); ++i) {
    EXPECT_EQ(token_noise(1234567, static_cast<int32_t>(i)), published[i]);
  }
}

TEST(Race, TheLeastNoiseIsThatOfOneOfTheTokens) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 500; ++round) {
    const uint64_t key = random();
    const auto first = static_cast<int32_t>(random() % 100'000);
    const auto count = static_cast<int32_t>(1 + random() % 70);
    uint64_t least = token_noise(key, first);
    for (int32_t id = first; id < first + count; ++id)
      least = std::min(least, token_noise(key, id));
    ASSERT_EQ(least_noise(key, first, count), least);
  }
}

TEST(Race, EverySeedPositionAndPurposeHasAKeyOfItsOwn) {
  std::set<uint64_t> keys;
  for (uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32, ~uint64_t{0}}) {
    for (int64_t position = 0; position < 100; ++position) {
      for (auto purpose : {DrawPurpose::plain, DrawPurpose::accept, DrawPurpose::residual}) {
        keys.insert(draw_key(seed, position, purpose));
        EXPECT_EQ(draw_key(seed, position, purpose), draw_key(seed, position, purpose));
      }
    }
  }
  EXPECT_EQ(keys.size(), 4u * 100 * 3);
  EXPECT_EQ(draw_key(7, 8), draw_key(7, 8, DrawPurpose::plain));
}

TEST(Race, TimesAreMinusTheLogarithmOfTheRest) {
  std::mt19937_64 random(2);
  const int num_rounds = scaled(50'000, 5'000'000);
  for (int round = 0; round < num_rounds; ++round) {
    uint64_t noise = random() >> (random() % 64);
    if (round % 2 == 0) noise = ~noise;
    const double u = std::min((static_cast<double>(noise) + 0.5) * 0x1p-64, 1.0 - 0x1p-53);
    const auto expected = static_cast<double>(-std::log1p(-static_cast<long double>(u)));
    ASSERT_NEAR(exponential_time(noise), expected, 1e-15 * expected) << noise;
  }
}

TEST(Race, TimesNeverDecreaseWithTheNoiseAndAreFinite) {
  EXPECT_GT(exponential_time(0), 0.0);
  EXPECT_LT(exponential_time(0), 0x1p-64);
  EXPECT_LT(exponential_time(~uint64_t{0}), 37.0);
  std::mt19937_64 random(3);
  for (int round = 0; round < 50'000; ++round) {
    const uint64_t a = random() >> (random() % 64), b = random() >> (random() % 64);
    ASSERT_LE(exponential_time(std::min(a, b)), exponential_time(std::max(a, b)) * (1 + 1e-15));
  }
}

TEST(Race, TheLeastTimeWinsInAnyOrderOfEntries) {
  std::mt19937_64 random(4);
  const int num_rounds = scaled(3000, 300'000);
  for (int round = 0; round < num_rounds; ++round) {
    const uint64_t key = random();
    std::vector<std::pair<int32_t, double>> entries(1 + random() % 40);
    for (size_t i = 0; i < entries.size(); ++i) {
      const auto weight = static_cast<double>(random() >> (20 + random() % 44));
      entries[i] = {static_cast<int32_t>(i * i), weight};
    }
    int32_t first = -1;
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [id, weight] : entries) {
      const double time = exponential_time(token_noise(key, id)) / weight;
      if (weight > 0 && time < least) first = id;
      if (weight > 0) least = std::min(least, time);
    }
    std::ranges::shuffle(entries, random);
    Race race(key);
    for (const auto& [id, weight] : entries) race.enter(id, weight);
    ASSERT_EQ(race.winner(), first) << round;
  }
}

TEST(Race, EqualTimesGoToTheLowestId) {
  int num_ties = 0;
  for (uint64_t key = 0; key < 100; ++key) {
    const double time = exponential_time(token_noise(key, 5));
    const double other = exponential_time(token_noise(key, 9));
    const double weight = other / time;
    if (other / weight != time) continue;
    ++num_ties;
    Race up(key), down(key);
    up.enter(5, 1.0);
    up.enter(9, weight);
    down.enter(9, weight);
    down.enter(5, 1.0);
    EXPECT_EQ(up.winner(), 5) << key;
    EXPECT_EQ(down.winner(), 5) << key;
  }
  EXPECT_GT(num_ties, 20);
}

TEST(Race, ATokenWithoutWeightNeverWins) {
  Race race(key_that_favours(3));
  EXPECT_EQ(race.winner(), -1);
  race.enter(3, 0.0);
  EXPECT_EQ(race.winner(), -1);
  race.enter(4, 1.0);
  race.enter(3, 0.0);
  EXPECT_EQ(race.winner(), 4);
  race.enter(3, 1.0);
  EXPECT_EQ(race.winner(), 3);
}

TEST(Race, MoreNoiseThanTheMostMeansALossAndLittleLessAWin) {
  std::mt19937_64 random(5);
  Race empty(1);
  EXPECT_EQ(empty.most_noise(1.0), ~uint64_t{0});
  for (int round = 0; round < 2000; ++round) {
    const uint64_t key = random();
    Race race(key);
    race.enter(0, 0x1p43);
    const double weight = std::exp2(static_cast<double>(random() % 43));
    const uint64_t most = race.most_noise(weight);
    const double time = exponential_time(token_noise(key, 0)) / 0x1p43;
    if (most < ~uint64_t{0} - 1) {
      ASSERT_GE(exponential_time(most + 1) / weight, time);
    }
    // -log(1 - u) is less than u + u^2 for u below 1/2.
    const double u = static_cast<double>(most) * 0x1p-64;
    if (most > 1000 && u < 0.5) {
      ASSERT_LT(exponential_time(most - most / 500) / weight, time * (1 + u));
    }
  }
}

}  // namespace
}  // namespace paceline
