// The frequencies of drawn tokens, and what a draw depends on.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "tests/sampling/sampler_fixture.h"

namespace paceline {
namespace {

class DrawTest : public SamplerFixture {
 protected:
  // Pearson's statistic of drawn ids, grouped by id modulo num_cells, against the weights.
  double chi_square(const std::vector<float>& logits, const SamplingOptions& options,
                    size_t num_cells, int num_draws,
                    const std::function<std::pair<uint64_t, int64_t>(int)>& key) {
    std::vector<double> expected(num_cells, 0.0), observed(num_cells, 0.0);
    double total = 0;
    for (const TokenWeight& token : distribution(logits, options).tokens) {
      expected[static_cast<size_t>(token.id) % num_cells] += static_cast<double>(token.weight);
      total += static_cast<double>(token.weight);
    }
    Sampler s = sampler(logits.size());
    SamplingOptions keyed = options;
    for (int i = 0; i < num_draws; ++i) {
      const auto [seed, position] = key(i);
      keyed.seed = seed;
      const int32_t id = s.draw({logits}, keyed, {}, position).id;
      observed[static_cast<size_t>(id) % num_cells] += 1;
    }
    double statistic = 0;
    for (size_t cell = 0; cell < num_cells; ++cell) {
      const double mean = expected[cell] / total * num_draws;
      if (mean == 0) {
        EXPECT_EQ(observed[cell], 0) << cell;
        continue;
      }
      statistic += (observed[cell] - mean) * (observed[cell] - mean) / mean;
    }
    return statistic;
  }
};

constexpr int kNumDraws = 40000;
constexpr double kLimitOf7 = 24.3;   // 99.9 % quantile of chi-square with 7 degrees of freedom
constexpr double kLimitOf19 = 43.8;  // with 19

TEST_F(DrawTest, FrequenciesFollowTheProbabilitiesOverSeedsAndOverPositions) {
  const std::vector<float> logits = {0.0f, 1.0f, 2.0f, 0.5f, -1.0f, 1.5f, 0.1f, -0.5f};
  const auto over_seeds = [](int i) {
    return std::pair<uint64_t, int64_t>(static_cast<uint64_t>(i), 17);
  };
  const auto over_positions = [](int i) { return std::pair<uint64_t, int64_t>(12345, i); };
  const auto over_choices = [](int i) {  // choice k of a request is the request with seed + k
    return std::pair<uint64_t, int64_t>(static_cast<uint64_t>(i % 200), i / 200);
  };
  SamplingOptions options;
  for (float temperature : {0.5f, 1.0f, 2.0f}) {
    options.temperature = temperature;
    EXPECT_LT(chi_square(logits, options, 8, kNumDraws, over_seeds), kLimitOf7);
    EXPECT_LT(chi_square(logits, options, 8, kNumDraws, over_positions), kLimitOf7);
    EXPECT_LT(chi_square(logits, options, 8, kNumDraws, over_choices), kLimitOf7);
  }
  options = {};
  options.top_k = 5;
  options.top_p = 0.9f;
  EXPECT_LT(chi_square(logits, options, 8, kNumDraws, over_positions), kLimitOf7);
  options.order = SamplerOrder::mlx;
  options.temperature = 1.5f;
  EXPECT_LT(chi_square(logits, options, 8, kNumDraws, over_positions), kLimitOf7);
}

TEST_F(DrawTest, FrequenciesFollowTheProbabilitiesOverAWholeRow) {
  std::vector<float> logits(1000);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = std::sin(static_cast<float>(i * i));
  const auto over_positions = [](int i) { return std::pair<uint64_t, int64_t>(1, i); };
  EXPECT_LT(chi_square(logits, {}, 20, kNumDraws, over_positions), kLimitOf19);
  SamplingOptions options;
  options.top_p = 0.8f;
  EXPECT_LT(chi_square(logits, options, 20, kNumDraws, over_positions), kLimitOf19);
}

TEST_F(DrawTest, AWrongDistributionWouldBeNoticed) {
  const std::vector<float> logits = {0.0f, 1.0f, 2.0f, 0.5f, -1.0f, 1.5f, 0.1f, -0.5f};
  std::vector<float> shifted = logits;
  shifted[3] += 0.1f;  // 10 % more of one token
  Sampler s = sampler(8);
  std::vector<double> observed(8, 0.0);
  for (int i = 0; i < kNumDraws; ++i)
    observed[static_cast<size_t>(s.draw({shifted}, {}, {}, i).id)] += 1;
  double total = 0, statistic = 0;
  for (float x : logits) total += std::exp(x);
  for (size_t id = 0; id < 8; ++id) {
    const double mean = std::exp(logits[id]) / total * kNumDraws;
    statistic += (observed[id] - mean) * (observed[id] - mean) / mean;
  }
  EXPECT_GT(statistic, kLimitOf7);
}

TEST_F(DrawTest, TheSameSeedAndPositionGiveTheSameTokenWhateverCameBefore) {
  std::vector<float> logits(500), other(500);
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = std::sin(static_cast<float>(3 * i * i));
    other[i] = 20.0f * std::cos(static_cast<float>(i));
  }
  std::vector<SamplingOptions> variants(4);
  variants[1].top_k = 40;
  variants[2].top_p = 0.7f;
  variants[3].temperature = 0.6f;
  variants[3].order = SamplerOrder::mlx;
  variants[3].min_p = 0.1f;
  for (const SamplingNumber& number : kSamplingNumbers) {
    const auto* member = std::get_if<float SamplingOptions::*>(&number.member);
    if (member == nullptr) continue;
    variants.emplace_back().*(*member) =
        static_cast<float>((number.range.min + std::min(number.range.max, 2.0)) / 2);
  }
  Sampler busy = sampler(500);
  for (SamplingOptions options : variants) {
    options.seed = 99;
    for (int64_t position : {0, 1, 7, 100000}) {
      Sampler fresh = sampler(500);
      const int32_t id = fresh.draw({logits}, options, {}, position).id;
      TokenHistory history;
      history.add_output(3);
      SamplingOptions noise = options;
      noise.repetition_penalty = 1.7f;
      noise.seed = static_cast<uint64_t>(position);
      busy.draw(with_sum(other), noise, history, position + 1);
      busy.score(with_sum(other), 4, 20);
      busy.draw(with_sum(std::vector<float>(500, kNan)), noise, history, 0);
      EXPECT_EQ(busy.draw(with_sum(logits), options, {}, position).id, id);
      EXPECT_EQ(busy.draw({logits}, options, {}, position).id, id);
    }
  }
}

TEST_F(DrawTest, AnotherSeedOrPositionIsAnotherNumber) {
  const std::vector<float> logits(4096, 0.0f);
  SamplingOptions options;
  Sampler s = sampler(4096);
  int num_equal = 0;
  for (int i = 0; i < 100; ++i) {
    options.seed = static_cast<uint64_t>(i);
    const int32_t id = s.draw({logits}, options, {}, 5).id;
    num_equal += s.draw({logits}, options, {}, 6).id == id ? 1 : 0;
    options.seed += 1;
    num_equal += s.draw({logits}, options, {}, 5).id == id ? 1 : 0;
  }
  EXPECT_LE(num_equal, 2);
}

}  // namespace
}  // namespace paceline
