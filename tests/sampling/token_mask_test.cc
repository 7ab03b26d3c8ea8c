#include "sampling/token_mask.h"

#include <gmock/gmock.h>

#include "tests/sampling/sampler_fixture.h"

namespace paceline {
namespace {

using testing::ElementsAre;

constexpr float kNever = -kInf;

std::vector<float> masked(const TokenMask& mask, const std::vector<int32_t>& output) {
  std::vector<float> logits = {1, 2, 3, 4, 5};
  mask.apply(logits, output);
  return logits;
}

TEST(TokenMask, LeavesOnlyWhatIsAllowed) {
  EXPECT_THAT(masked({{3, 1, 3}, {}}, {}), ElementsAre(kNever, 2, kNever, 4, kNever));
  EXPECT_THAT(masked({{0, 4}, {}}, {}), ElementsAre(1, kNever, kNever, kNever, 5));
  EXPECT_THAT(masked({{}, {}}, {}), ElementsAre(1, 2, 3, 4, 5));
}

TEST(TokenMask, BansTheTokenThatWouldCompleteASequence) {
  const TokenMask mask({}, {{2}, {0, 1}, {3, 0, 4}});
  EXPECT_THAT(masked(mask, {}), ElementsAre(1, 2, kNever, 4, 5));
  EXPECT_THAT(masked(mask, {0}), ElementsAre(1, kNever, kNever, 4, 5));
  EXPECT_THAT(masked(mask, {3, 0}), ElementsAre(1, kNever, kNever, 4, kNever));
  EXPECT_THAT(masked(mask, {3, 0, 1}), ElementsAre(1, 2, kNever, 4, 5));
  EXPECT_TRUE(mask.reads_output());
  EXPECT_FALSE(TokenMask({1}, {}).reads_output());
  EXPECT_FALSE(TokenMask({}, {{2}, {4}}).reads_output());
}

TEST(TokenMask, ABannedTokenBeyondTheVocabularyIsNone) {
  EXPECT_THAT(masked({{}, {{7}, {0, 9}}}, {0}), ElementsAre(1, 2, 3, 4, 5));
}

class MaskedSampler : public SamplerFixture {
 protected:
  static SamplingOptions with_mask(std::vector<int32_t> allowed,
                                   std::vector<std::vector<int32_t>> banned) {
    SamplingOptions options;
    options.mask = std::make_shared<const TokenMask>(std::move(allowed), std::move(banned));
    return options;
  }
};

TEST_F(MaskedSampler, DrawsFromWhatIsLeftBehindBiasAndPenalties) {
  const std::vector<float> logits = {1, 5, 4, 2};
  EXPECT_THAT(kept(logits, with_mask({0, 2}, {})), ElementsAre(0, 2));
  SamplingOptions options = with_mask({0, 2}, {{2}});
  options.logit_bias = {{1, 50.0f}, {3, 50.0f}};
  EXPECT_THAT(kept(logits, options), ElementsAre(0));
  options.temperature = 0;
  const Sample sample = draw(logits, options);
  EXPECT_EQ(sample.id, 0);
  SamplingOptions plain;
  EXPECT_EQ(sample.logprob, sampler(4).score(with_sum(logits), 0, 0).logprob)
      << "of the raw logits";
}

TEST_F(MaskedSampler, TopKCountsWhatIsLeft) {
  SamplingOptions options = with_mask({0, 2, 3}, {});
  options.top_k = 2;
  EXPECT_THAT(kept({1, 5, 4, 2}, options), ElementsAre(2, 3));
}

TEST_F(MaskedSampler, ABiasOfMinusInfinityIsNever) {
  SamplingOptions options;
  options.logit_bias = {{1, kNever}};
  EXPECT_THAT(kept({1, 500, 4, 2}, options), ElementsAre(0, 2, 3));
}

TEST_F(MaskedSampler, SaysWhenNothingIsLeft) {
  SamplingOptions options = with_mask({1}, {{1}});
  EXPECT_EQ(draw({1, 2, 3}, options).status, SampleStatus::all_forbidden);
  EXPECT_EQ(distribution({1, 2, 3}, options).status, SampleStatus::all_forbidden);
  // Here the row allows nothing.
  EXPECT_EQ(draw({kNever, kNever, kNever}, options).status, SampleStatus::nothing_to_draw);
}

TEST_F(MaskedSampler, NamedTokensAreReportedInTheirOrder) {
  SamplingOptions options;
  options.num_top_logprobs = 2;
  options.logprob_token_ids = {3, 0};
  const std::vector<float> logits = {1, 5, 4, 2};
  const Sample sample = draw(logits, options);
  ASSERT_EQ(sample.top_logprobs.size(), 2u);
  for (const TokenLogprob& one : sample.top_logprobs) {
    EXPECT_EQ(one.logprob, sampler(4).score(with_sum(logits), one.id, 0).logprob);
  }
  EXPECT_EQ(sample.top_logprobs[0].id, 3);
  EXPECT_EQ(sampler(4).score(with_sum(logits), 1, 2).top_logprobs.size(), 2u)
      << "prompts have the likeliest";
}

}  // namespace
}  // namespace paceline
