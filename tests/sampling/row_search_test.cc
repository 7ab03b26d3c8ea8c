// The parts below the sampler: block maxima, weights and cuts by rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "sampling/blocked_row.h"
#include "sampling/candidates.h"
#include "sampling/draw.h"
#include "sampling/race.h"
#include "sampling/ranking.h"
#include "sampling/weights.h"
#include "tensor/memory.h"
#include "tests/test_scale.h"

namespace paceline {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> random_row(std::mt19937_64& random, size_t width) {
  std::normal_distribution<float> normal(0.0f, 2.0f);
  std::vector<float> row(width);
  for (float& x : row) x = normal(random);
  return row;
}

TEST(BlockedRow, FindsMaximumArgmaxAndLowerBoundsAtEveryWidth) {
  std::mt19937_64 random(1);
  BlockedRow blocked(1000);
  for (size_t width : {1, 2, 63, 64, 65, 127, 128, 129, 640, 1000}) {
    std::vector<float> row = random_row(random, width);
    for (size_t i = 0; i < width / 3; ++i) row[random() % width] = 5.0f;  // ties
    blocked.scan(row);
    EXPECT_FALSE(blocked.has_nan());
    EXPECT_EQ(blocked.max(), *std::max_element(row.begin(), row.end()));
    EXPECT_EQ(blocked.argmax(), std::max_element(row.begin(), row.end()) - row.begin());
    for (int64_t count : {1, 2, 5, 10, 16}) {
      const float bound = blocked.reached_by(count);
      const auto reached =
          std::count_if(row.begin(), row.end(), [&](float x) { return x >= bound; });
      if (count <= static_cast<int64_t>(width)) {
        EXPECT_GE(reached, count);
      }
      if (count > blocked.num_blocks()) {
        EXPECT_EQ(bound, -kInfinity);
      }
    }
  }
}

TEST(BlockedRow, FindsNanAnywhereAndTreatsZerosAsEqual) {
  std::mt19937_64 random(2);
  BlockedRow blocked(200);
  const std::vector<float> row = random_row(random, 200);
  for (size_t i = 0; i < row.size(); ++i) {
    std::vector<float> poisoned = row;
    poisoned[i] = kNan;
    blocked.scan(poisoned);
    EXPECT_TRUE(blocked.has_nan()) << i;
  }
  blocked.scan(row);
  EXPECT_FALSE(blocked.has_nan());
  blocked.scan(std::vector<float>{-1.0f, -0.0f, 0.0f});
  EXPECT_EQ(blocked.argmax(), 1);
  const std::vector<float> nothing(70, -kInfinity);
  blocked.scan(nothing);
  EXPECT_EQ(blocked.max(), -kInfinity);
}

TEST(Weights, AreTheExponentialsInUnitsOfTwoToTheMinus43) {
  std::mt19937_64 random(3);
  for (float temperature : {0.01f, 0.3f, 1.0f, 2.0f}) {
    const Weigher weigher(1.5f, temperature);
    std::vector<float> logits(64);
    std::vector<uint64_t> weights(64);
    for (size_t i = 0; i < logits.size(); ++i)
      logits[i] = 1.5f - temperature * 40.0f * static_cast<float>(i) / 63.0f;
    weigher.weigh_block(logits.data(), weights.data());
    uint64_t sum = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
      const double expected = 0x1p43 * std::exp((double{logits[i]} - 1.5) / double{temperature});
      EXPECT_NEAR(static_cast<double>(weights[i]), expected, 0.51 + expected * 6e-6);
      sum += weights[i];
    }
    EXPECT_EQ(weights[0], kWeightOne);
    EXPECT_EQ(weights[63], 0u);
    EXPECT_EQ(weigher.sum_block(logits.data()), sum);
  }
}

TEST(Weights, EndureEveryFiniteLogitAndTheLeastTemperature) {
  const float largest = std::numeric_limits<float>::max();
  for (float temperature : {std::numeric_limits<float>::denorm_min(), 1e-38f, 2.0f}) {
    for (float max : {largest, 0.0f, -largest}) {
      const Weigher weigher(max, temperature);
      std::vector<float> logits(64, -kInfinity);
      std::vector<uint64_t> weights(64, 7);
      logits[3] = max;
      logits[4] = -largest;
      weigher.weigh_block(logits.data(), weights.data());
      EXPECT_EQ(weights[3], kWeightOne);
      EXPECT_EQ(weights[4], max == -largest ? kWeightOne : 0);
      EXPECT_EQ(weights[0], 0u);
      EXPECT_LE(weigher.cutoff(1.0), max);
      EXPECT_GE(weigher.cutoff(0.0), -largest);
    }
  }
}

TEST(Weights, CutoffMissesNothingThatReachesTheFraction) {
  std::mt19937_64 random(4);
  std::uniform_real_distribution<float> uniform(0.0f, 1.0f);
  const int num_rounds = scaled(2000, 200'000);
  for (int round = 0; round < num_rounds; ++round) {
    const float max = 100.0f * (uniform(random) - 0.5f);
    const float temperature = std::pow(10.0f, -4.0f * uniform(random));
    const Weigher weigher(max, temperature);
    std::vector<float> logits(64);
    std::vector<uint64_t> weights(64);
    for (float& x : logits) x = max - 30.0f * temperature * uniform(random);
    weigher.weigh_block(logits.data(), weights.data());
    for (size_t i = 0; i < 64; ++i)
      ASSERT_GE(logits[i], weigher.cutoff(static_cast<double>(weights[i]) / 0x1p43));
  }
}

TEST(Ranking, KeysOrderByLogitThenByLowerId) {
  const std::vector<std::pair<float, int32_t>> descending = {
      {kInfinity, 4}, {2.5f, 0}, {2.5f, 9},  {1e-40f, 3}, {0.0f, 1},
      {-0.0f, 2},     {0.0f, 5}, {-1.0f, 7}, {-3e38f, 0}, {-kInfinity, 0}};
  for (size_t i = 1; i < descending.size(); ++i) {
    EXPECT_GT(rank_key(descending[i - 1].first, descending[i - 1].second),
              rank_key(descending[i].first, descending[i].second))
        << i;
  }
  EXPECT_EQ(id_of_key(rank_key(-3.0f, 128255)), 128255);
}

TEST(Ranking, APrefixEndsWhereASortWouldEndIt) {
  std::mt19937_64 random(5);
  const int num_rounds = scaled(600, 60'000);
  for (int round = 0; round < num_rounds; ++round) {
    const size_t count = 1 + random() % (round % 20 == 0 ? 20000 : 400);
    const uint64_t distinct = round % 3 == 0 ? 3 : 1u << 20;
    std::vector<RankedWeight> entries(count);
    uint64_t total = 0;
    for (size_t i = 0; i < count; ++i) {
      const float logit = static_cast<float>(random() % distinct) * 1e-3f - 1.0f;
      entries[i] = {rank_key(logit, static_cast<int32_t>(i)),
                    random() % 4 == 0 ? 0 : random() % 1000};
      total += entries[i].weight;
    }
    const uint64_t target = 1 + random() % (total + total / 8 + 1);
    std::vector<RankedWeight> sorted = entries;
    std::sort(sorted.begin(), sorted.end(), [](auto& a, auto& b) { return a.key > b.key; });
    uint64_t sum = 0, expected = sorted.back().key;
    for (const RankedWeight& entry : sorted) {
      sum += entry.weight;
      if (sum >= target) {
        expected = entry.key;
        break;
      }
    }
    ASSERT_EQ(last_key_of_prefix(entries, target), expected) << round;
  }
}

// A race of every element, none skipped.
int32_t first_of_all(const BlockedRow& row, const Weigher& weigher, uint64_t key) {
  int32_t first = -1;
  double least = std::numeric_limits<double>::infinity();
  std::vector<uint64_t> weights(64);
  for (int64_t block = 0; block < row.num_blocks(); ++block) {
    weigher.weigh_block(row.block(block), weights.data());
    for (size_t i = 0; i < 64; ++i) {
      const auto id = static_cast<int32_t>(block * 64) + static_cast<int32_t>(i);
      const double time = exponential_time(token_noise(key, id)) / static_cast<double>(weights[i]);
      if (weights[i] == 0 || time >= least) continue;
      least = time;
      first = id;
    }
  }
  return first;
}

TEST(Draw, FromARowOrItsElementsIsTheRaceOfAllOfThem) {
  std::mt19937_64 random(6);
  Memory memory;
  const int num_draws = scaled(300, 30'000);
  for (size_t width : {1, 5, 64, 100, 1000, 9000}) {
    for (float temperature : {0.02f, 0.3f, 2.0f, 100.0f}) {
      std::vector<float> row = random_row(random, width);
      for (size_t i = 0; i < width / 4; ++i) row[random() % width] = -kInfinity;
      row[random() % width] = 1.0f;
      BlockedRow blocked(static_cast<int64_t>(width));
      blocked.scan(row);
      const Weigher weigher(blocked.max(), temperature);
      Candidates candidates(memory, static_cast<int64_t>(width));
      candidates.collect(blocked, -kInfinity);
      candidates.weigh(weigher);
      for (int i = 0; i < num_draws / (width > 1000 ? 10 : 1); ++i) {
        const uint64_t key = random();
        const int32_t id = draw_from_row(blocked, weigher, key);
        ASSERT_EQ(id, first_of_all(blocked, weigher, key)) << width << ", " << key;
        ASSERT_EQ(draw_candidate(candidates, key), id) << width << ", " << key;
      }
    }
  }
}

TEST(Draw, ATokenIsDrawnHoweverLittleItWeighs) {
  const auto draw = [](const std::vector<float>& row, int32_t favoured) {
    BlockedRow blocked(std::ssize(row));
    blocked.scan(row);
    const uint64_t key = 0 - (static_cast<uint64_t>(favoured) + 1) * kNoiseStep;  // noise 0
    return draw_from_row(blocked, Weigher(blocked.max(), 1.0f), key);
  };
  EXPECT_EQ(draw({0.0f, -29.8f}, 1), 1);
  std::vector<float> wide(5000, 0.0f);
  wide[4999] = -29.8f;
  EXPECT_EQ(draw(wide, 4999), 4999);
  wide[4999] = -31.0f;
  EXPECT_NE(draw(wide, 4999), 4999) << "its weight is 0";
  std::vector<float> apart(5000, -100.0f);
  apart[0] = 0.0f;
  apart[4999] = -29.8f;
  EXPECT_EQ(draw(apart, 4999), 4999);
  EXPECT_EQ(draw(apart, 300), 0);
}

uint64_t without_shift(uint64_t shifted, int count) {
  uint64_t bits = shifted;
  for (int known = count; known < 64; known += count) bits = shifted ^ (bits >> count);
  return bits;
}

uint64_t inverse(uint64_t odd) {  // modulo 2^64, by Newton's iteration
  uint64_t found = odd;
  for (int i = 0; i < 5; ++i) found *= 2 - odd * found;
  return found;
}

// SplitMix64 backwards.
uint64_t key_with_noise(int32_t id, uint64_t noise) {
  uint64_t state = without_shift(noise, 31) * inverse(0x94D049BB133111EBu);
  state = without_shift(state, 27) * inverse(0xBF58476D1CE4E5B9u);
  return without_shift(state, 30) - (static_cast<uint64_t>(id) + 1) * kNoiseStep;
}

TEST(Draw, ATokenIsDrawnFromABlockThatHardlyWeighsAnything) {
  // A token of weight 1 comes at 2^-64 * noise, the other one of weight 2^43 at 2^-43 * its time.
  std::vector<float> row(200, -kInfinity);
  row[0] = 0.0f;
  row[130] = -29.8f;
  BlockedRow blocked(std::ssize(row));
  blocked.scan(row);
  const Weigher weigher(0.0f, 1.0f);
  int num_rare = 0;
  for (uint64_t noise = 1; noise < uint64_t{1} << 24; noise += noise / 16 + 1) {
    const uint64_t key = key_with_noise(130, noise);
    ASSERT_EQ(token_noise(key, 130), noise);
    const int32_t id = draw_from_row(blocked, weigher, key);
    ASSERT_EQ(id, first_of_all(blocked, weigher, key)) << noise;
    num_rare += id == 130 ? 1 : 0;
  }
  EXPECT_GT(num_rare, 100);
}

TEST(Draw, ABlockFarBelowTheLargestWeighsNothing) {
  std::mt19937_64 random(7);
  std::vector<float> row = random_row(random, 3 * 64);
  std::fill(row.begin() + 64, row.begin() + 128, -100.0f);
  BlockedRow blocked(std::ssize(row));
  blocked.scan(row);
  const Weigher weigher(blocked.max(), 1.0f);
  std::vector<uint64_t> sums(3, 7);
  const uint64_t total = sum_blocks(blocked, weigher, sums);
  EXPECT_EQ(sums[0], weigher.sum_block(row.data()));
  EXPECT_EQ(sums[1], 0u);
  EXPECT_EQ(sums[2], weigher.sum_block(row.data() + 128));
  EXPECT_EQ(total, sums[0] + sums[2]);
}

}  // namespace
}  // namespace paceline
