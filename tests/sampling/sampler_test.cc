// Tests every rule with an example that can be computed by hand.
#include "sampling/sampler.h"

#include <gmock/gmock.h>

#include <cmath>

#include "base/error.h"
#include "sampling/token_mask.h"
#include "sampling/weights.h"
#include "tests/expect_error.h"
#include "tests/sampling/sampler_fixture.h"

namespace paceline {
namespace {

using Ids = std::vector<int32_t>;

class SamplerTest : public SamplerFixture {};

// Probabilities 0.1, 0.4, 0.2, 0.3.
const std::vector<float> kTenths = {std::log(1.0f), std::log(4.0f), std::log(2.0f), std::log(3.0f)};

TEST_F(SamplerTest, TemperatureZeroTakesTheLargestTiesToTheLowestId) {
  EXPECT_EQ(draw({1.0f, 3.0f, 2.0f, 3.0f}, greedy()).id, 1);
  EXPECT_EQ(draw({-kInf, -5.0f, -5.0f}, greedy()).id, 1);
  SamplingOptions options = greedy();
  options.top_k = 1;
  options.top_p = 0.1f;
  options.min_p = 0.9f;
  EXPECT_EQ(draw({1.0f, 3.0f, 2.0f, 3.0f}, options).id, 1);
}

TEST_F(SamplerTest, TemperatureZeroLooksAfterPenaltiesAndBias) {
  TokenHistory history;
  history.add_output(1);
  SamplingOptions options = greedy();
  options.repetition_penalty = 2.0f;
  EXPECT_EQ(draw({1.0f, 3.0f, 2.0f}, options, history).id, 2);
  options.logit_bias = {{0, 1.5f}};
  EXPECT_EQ(draw({1.0f, 3.0f, 2.0f}, options, history).id, 0);
  options.logit_bias = {{2, -100.0f}};
  EXPECT_EQ(draw({1.0f, 3.0f, 2.0f}, options, history).id, 1) << "1.5 is the largest now";
}

TEST_F(SamplerTest, ABiasOfMinus100OnlyAdds) {
  SamplingOptions options = greedy();
  options.logit_bias = {{1, -100.0f}};
  EXPECT_EQ(draw({-200.0f, 3.0f}, options).id, 1) << "-97 is still the largest";
}

TEST_F(SamplerTest, WeightsAreProportionalToProbabilities) {
  const auto tokens = distribution(kTenths, {}).tokens;
  ASSERT_EQ(tokens.size(), 4u);
  double total = 0;
  for (const auto& token : tokens) total += static_cast<double>(token.weight);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(tokens[i].id, static_cast<int32_t>(i));
    EXPECT_NEAR(static_cast<double>(tokens[i].weight) / total, std::exp(kTenths[i]) / 10.0, 1e-6);
  }
}

TEST_F(SamplerTest, TemperatureDividesTheLogits) {
  // At 0.5 the odds are squared: 1 : 16 : 4 : 9.
  const auto tokens =
      distribution(kTenths, options_with(&SamplingOptions::temperature, 0.5f)).tokens;
  ASSERT_EQ(tokens.size(), 4u);
  EXPECT_NEAR(static_cast<double>(tokens[0].weight) / static_cast<double>(tokens[1].weight),
              1.0 / 16, 1e-6);
  EXPECT_NEAR(static_cast<double>(tokens[3].weight) / static_cast<double>(tokens[1].weight),
              9.0 / 16, 1e-6);
}

TEST_F(SamplerTest, TopKKeepsExactlyKTiesToLowerIds) {
  SamplingOptions options;
  options.top_k = 2;
  EXPECT_EQ(kept(kTenths, options), (Ids{1, 3}));
  EXPECT_EQ(kept({1.0f, 5.0f, 1.0f, 1.0f}, options), (Ids{0, 1}));
  options.top_k = 4;
  EXPECT_EQ(kept(kTenths, options).size(), 4u);
  options.top_k = 1000;
  EXPECT_EQ(kept(kTenths, options).size(), 4u);
  options.top_k = 3;
  EXPECT_EQ(kept({-kInf, 5.0f, -kInf, 1.0f}, options), (Ids{1, 3}));
}

TEST_F(SamplerTest, TopPKeepsTheSmallestPrefixThatReachesIt) {
  const auto top_p = [&](const std::vector<float>& logits, float value) {
    return kept(logits, options_with(&SamplingOptions::top_p, value));
  };
  EXPECT_EQ(top_p(kTenths, 0.01f), (Ids{1})) << "at least one";
  EXPECT_EQ(top_p(kTenths, 0.0f), (Ids{1}));
  EXPECT_EQ(top_p(kTenths, 0.39f), (Ids{1}));
  EXPECT_EQ(top_p(kTenths, 0.41f), (Ids{1, 3}));
  EXPECT_EQ(top_p(kTenths, 0.69f), (Ids{1, 3}));
  EXPECT_EQ(top_p(kTenths, 0.71f), (Ids{1, 2, 3}));
  EXPECT_EQ(top_p(kTenths, 0.91f), (Ids{0, 1, 2, 3}));
  const std::vector<float> flat(8, 2.0f);
  EXPECT_EQ(top_p(flat, 0.5f), (Ids{0, 1, 2, 3})) << "exactly reached";
  EXPECT_EQ(top_p(flat, 0.51f), (Ids{0, 1, 2, 3, 4}));
  EXPECT_EQ(top_p(flat, 0.125f), (Ids{0}));
  EXPECT_EQ(top_p(flat, 0.0f), (Ids{0})) << "ties go to the lowest id";
}

TEST_F(SamplerTest, MinPKeepsWhatIsAtLeastAFractionOfTheLikeliest) {
  const auto min_p = [&](float value) {
    return kept(kTenths, options_with(&SamplingOptions::min_p, value));
  };
  EXPECT_EQ(min_p(0.24f), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(min_p(0.26f), (Ids{1, 2, 3}));
  EXPECT_EQ(min_p(0.51f), (Ids{1, 3}));
  EXPECT_EQ(min_p(0.76f), (Ids{1}));
  EXPECT_EQ(min_p(1.0f), (Ids{1}));
}

TEST_F(SamplerTest, TopNSigmaCountsEveryFiniteLogit) {
  const SamplingOptions one_sigma = options_with(&SamplingOptions::top_n_sigma, 1.0f);
  EXPECT_EQ(kept({0.0f, -1.0f, -kInf}, one_sigma), (Ids{0}));
  EXPECT_EQ(kept({0.0f, -1.0f, std::numeric_limits<float>::lowest()}, one_sigma), (Ids{0, 1}))
      << "the lowest of all makes the deviation large";
}

TEST_F(SamplerTest, TheStandardOrderCutsAfterTheTemperatureAndTopPLast) {
  // Probabilities 0.1, 0.4, 0.2, 0.3; squared and normalised 1/30, 16/30, 4/30, 9/30.
  SamplingOptions options;
  options.temperature = 0.5f;
  options.min_p = 0.3f;  // 4/16 falls, 9/16 stays
  EXPECT_EQ(kept(kTenths, options), (Ids{1, 3}));
  options.min_p = 0.0f;
  options.top_k = 2;
  options.top_p = 0.63f;  // 16/25 alone reaches it, once top-k has left two
  EXPECT_EQ(kept(kTenths, options), (Ids{1}));
  options.top_k = 0;  // 16/30 doesn't
  EXPECT_EQ(kept(kTenths, options), (Ids{1, 3}));
}

TEST_F(SamplerTest, TheMlxOrderCutsAtTemperatureOneAndTopPFirst) {
  SamplingOptions options;
  options.order = SamplerOrder::mlx;
  options.temperature = 0.5f;
  options.min_p = 0.3f;  // 0.2 / 0.4 stays, 0.1 / 0.4 falls
  EXPECT_EQ(kept(kTenths, options), (Ids{1, 2, 3}));
  options.min_p = 0.0f;
  options.top_k = 2;
  options.top_p = 0.63f;  // of all four: 0.4 + 0.3
  EXPECT_EQ(kept(kTenths, options), (Ids{1, 3}));
  options.top_p = 0.39f;
  EXPECT_EQ(kept(kTenths, options), (Ids{1}));
  options.top_p = 1.0f;
  const auto tokens = distribution(kTenths, options).tokens;
  ASSERT_EQ(tokens.size(), 2u);
  EXPECT_NEAR(static_cast<double>(tokens[1].weight) / static_cast<double>(tokens[0].weight),
              9.0 / 16, 1e-6)
      << "the draw is at the temperature";
}

// Typical-p leaves out a likely token far from the entropy; at a low temperature the others weigh
// nothing beside it.
TEST_F(SamplerTest, WhatTheMlxOrderLeavesIsWeighedByItself) {
  std::vector<float> logits(400, -5.0f);
  logits[7] = 0.0f;
  logits[8] = -4.9f;
  SamplingOptions options;
  options.order = SamplerOrder::mlx;
  options.typical_p = 0.3f;
  options.temperature = 0.01f;
  const auto tokens = distribution(logits, options).tokens;
  ASSERT_FALSE(tokens.empty());
  for (const TokenWeight& token : tokens) EXPECT_NE(token.id, 7);
  EXPECT_NE(draw(logits, options).id, 7);
}

TEST_F(SamplerTest, ANanAnywhereFailsTheRow) {
  for (size_t i : {0u, 70u, 99u}) {
    std::vector<float> logits(100, 1.0f);
    logits[i] = kNan;
    EXPECT_EQ(draw(logits, {}).status, SampleStatus::nan_logits);
    EXPECT_EQ(draw(logits, greedy()).status, SampleStatus::nan_logits);
    SamplingOptions options;
    options.logit_bias = {{static_cast<int32_t>(i), -100.0f}};
    options.top_k = 1;
    EXPECT_EQ(draw(logits, options).status, SampleStatus::nan_logits);
    EXPECT_EQ(distribution(logits, {}).status, SampleStatus::nan_logits);
    EXPECT_EQ(sampler(100).score(with_sum(logits), 5, 2).status, SampleStatus::nan_logits);
  }
}

TEST_F(SamplerTest, ARowWithoutFiniteMaximumLeavesNothingToDraw) {
  const std::vector<std::vector<float>> rows = {
      {-kInf, -kInf, -kInf}, {1.0f, kInf, 2.0f}, {-kInf, kInf, kInf}};
  for (const auto& logits : rows) {
    for (const SamplingOptions& options : {SamplingOptions(), greedy()}) {
      const Sample sample = draw(logits, options);
      EXPECT_EQ(sample.status, SampleStatus::nothing_to_draw);
      EXPECT_EQ(sample.id, -1);
      EXPECT_TRUE(sample.top_logprobs.empty());
    }
    EXPECT_EQ(sampler(3).score(with_sum(logits), 0, 2).status, SampleStatus::nothing_to_draw);
  }
}

TEST_F(SamplerTest, ARowThatCannotBeDrawnFromHasNoDistribution) {
  Sampler s = sampler(3);
  Distribution distribution;
  std::vector<float> row = {1.0f, 2.0f, 3.0f};
  EXPECT_EQ(s.distribution({row}, {}, {}, distribution), SampleStatus::ok);
  EXPECT_EQ(distribution.ids.size(), 3u);
  row[1] = kNan;
  EXPECT_EQ(s.distribution({row}, {}, {}, distribution), SampleStatus::nan_logits);
  EXPECT_TRUE(distribution.empty());
  EXPECT_TRUE(distribution.weights.empty());
  EXPECT_EQ(distribution.total, 0u);
}

TEST_F(SamplerTest, AtTemperatureZeroTheDistributionIsTheLargestAlone) {
  const std::vector<float> row = {1.0f, 3.0f, 2.0f, 3.0f};
  Distribution distribution;
  EXPECT_EQ(sampler(4).distribution({row}, greedy(), {}, distribution), SampleStatus::ok);
  EXPECT_EQ(distribution.ids, (Ids{1}));
  EXPECT_EQ(distribution.weights, (std::vector<uint64_t>{distribution.total}));
  EXPECT_GT(distribution.total, 0u);
}

TEST_F(SamplerTest, MinusInfinityIsNeverDrawn) {
  std::vector<float> logits(130, -kInf);
  logits[128] = -3.0f;
  for (int64_t position = 0; position < 20; ++position)
    EXPECT_EQ(draw(logits, {}, {}, position).id, 128);
}

TEST_F(SamplerTest, AVocabularyOfOneTokenAlwaysGivesIt) {
  SamplingOptions options;
  options.top_k = 1;
  options.top_p = 0.5f;
  options.min_p = 0.5f;
  EXPECT_EQ(draw({-7.0f}, options).id, 0);
  EXPECT_EQ(draw({-7.0f}, {}).id, 0);
}

TEST_F(SamplerTest, LogprobsAreThoseOfTheRawLogits) {
  SamplingOptions options = greedy();
  options.num_top_logprobs = 3;
  options.logit_bias = {{0, 100.0f}};
  const Sample sample = draw(kTenths, options);
  EXPECT_EQ(sample.id, 0);
  EXPECT_NEAR(sample.logprob, std::log(0.1), 1e-6);
  ASSERT_EQ(sample.top_logprobs.size(), 3u);
  EXPECT_EQ(sample.top_logprobs[0].id, 1);
  EXPECT_NEAR(sample.top_logprobs[0].logprob, std::log(0.4), 1e-6);
  EXPECT_EQ(sample.top_logprobs[1].id, 3);
  EXPECT_EQ(sample.top_logprobs[2].id, 2);
  EXPECT_NEAR(sample.top_logprobs[2].logprob, std::log(0.2), 1e-6);
}

TEST_F(SamplerTest, TopLogprobsBreakTiesByIdAndLeaveOutTheImpossible) {
  const auto top_ids = [&](const std::vector<float>& logits, int32_t count) {
    Ids ids;
    for (const auto& top : sampler(logits.size()).score(with_sum(logits), 0, count).top_logprobs)
      ids.push_back(top.id);
    return ids;
  };
  EXPECT_EQ(top_ids({1.0f, 2.0f, 1.0f, 2.0f}, 3), (Ids{1, 3, 0}));
  EXPECT_EQ(top_ids({1.0f, -kInf, 2.0f}, 20), (Ids{2, 0}));
  EXPECT_EQ(top_ids(kTenths, 0), Ids{});
  std::vector<float> wide(3000, 0.0f);
  wide[2999] = wide[64] = 1.0f;
  EXPECT_EQ(top_ids(wide, 5), (Ids{64, 2999, 0, 1, 2}));
}

TEST_F(SamplerTest, ARowWithAMaskedNanHasNoTopLogprobs) {
  SamplingOptions options;
  options.num_top_logprobs = 3;
  options.mask = std::make_shared<const TokenMask>(Ids{0, 2}, std::vector<Ids>{});
  const Sample sample = draw({1.0f, kNan, 2.0f}, options);
  EXPECT_EQ(sample.status, SampleStatus::ok);
  EXPECT_TRUE(sample.top_logprobs.empty());
}

TEST_F(SamplerTest, OneTopLogprobIsThatOfTheLikeliest) {
  SamplingOptions options = greedy();
  options.num_top_logprobs = 1;
  const Sample sample = draw({1.0f, 3.0f, 2.0f}, options);
  ASSERT_EQ(sample.top_logprobs.size(), 1u);
  EXPECT_EQ(sample.top_logprobs[0].id, 1);
}

TEST_F(SamplerTest, ScoreGivesTheLogprobOfAnyToken) {
  Sampler s = sampler(4);
  for (int32_t id = 0; id < 4; ++id) {
    const Sample sample = s.score(with_sum(kTenths), id, 0);
    EXPECT_EQ(sample.id, id);
    EXPECT_NEAR(sample.logprob, kTenths[static_cast<size_t>(id)] - std::log(10.0), 1e-6);
  }
  const std::vector<float> certain = {0.0f, -kInf};
  EXPECT_EQ(sampler(2).score(with_sum(certain), 1, 0).logprob, -kInf);
  EXPECT_EQ(sampler(2).score(with_sum(certain), 0, 0).logprob, 0.0f);
}

TEST_F(SamplerTest, LogprobsCostNothingWhenNotAskedFor) {
  SamplingOptions options = greedy();
  options.num_top_logprobs = 3;
  const Sample sample = sampler(4).draw({kTenths}, options, {}, 0);
  EXPECT_EQ(sample.id, 1);
  EXPECT_EQ(sample.logprob, 0.0f);
  EXPECT_TRUE(sample.top_logprobs.empty());
}

TEST_F(SamplerTest, TheRowIsLeftAsItIs) {
  std::vector<float> logits(200, 1.0f);
  logits[7] = 3.0f;
  const std::vector<float> before = logits;
  TokenHistory history;
  history.add_output(7);
  SamplingOptions options;
  options.repetition_penalty = 1.3f;
  options.logit_bias = {{9, 2.0f}};
  options.top_k = 10;
  draw(logits, options, history);
  EXPECT_EQ(logits, before);
}

TEST_F(SamplerTest, AVocabularyBeyondTheExactSumsIsRefused) {
  EXPECT_NO_THROW(sampler(static_cast<size_t>(kMaxWeights)));
  const std::string message =
      error_message(ErrorCode::unsupported, [&] { sampler(static_cast<size_t>(kMaxWeights) + 1); });
  EXPECT_EQ(message, "vocab_size: found 1048577, sampling takes at most 1048576");
}

}  // namespace
}  // namespace paceline
