#include "sampling/penalties.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace paceline {
namespace {

TokenHistory history(const std::vector<int32_t>& prompt, const std::vector<int32_t>& output) {
  TokenHistory history;
  history.add_prompt(prompt);
  for (int32_t id : output) history.add_output(id);
  return history;
}

std::vector<float> penalised(std::vector<float> logits, const SamplingOptions& options,
                             const TokenHistory& seen) {
  apply_penalties(logits, options, seen);
  return logits;
}

TEST(TokenHistory, CountsOnlyTheOutputAndListsEveryTokenOnce) {
  TokenHistory seen = history({5, 3, 5}, {3, 8, 3, 8, 3});
  std::vector<std::pair<int32_t, int32_t>> found;
  for (const TokenCount& token : seen.tokens()) found.emplace_back(token.id, token.in_output);
  EXPECT_EQ(found, (std::vector<std::pair<int32_t, int32_t>>{{5, 0}, {3, 3}, {8, 2}}));
}

TEST(Penalties, RepetitionDividesPositiveAndMultipliesOtherLogitsOnce) {
  SamplingOptions options;
  options.repetition_penalty = 2.0f;
  // Token 0 twice in the prompt and twice in the output: still once. Token 4 was never seen.
  EXPECT_EQ(penalised({3.0f, -3.0f, 0.0f, 1.0f, 4.0f}, options, history({0, 0, 1}, {0, 0, 2, 3})),
            (std::vector<float>{1.5f, -6.0f, 0.0f, 0.5f, 4.0f}));
  options.repetition_penalty = 0.5f;  // rewards
  EXPECT_EQ(penalised({3.0f, -3.0f}, options, history({0, 1}, {})),
            (std::vector<float>{6.0f, -1.5f}));
}

TEST(Penalties, FrequencyTimesCountAndPresenceOnceOfTheOutputOnly) {
  SamplingOptions options;
  options.frequency_penalty = 0.5f;
  EXPECT_EQ(penalised({1.0f, 1.0f, 1.0f}, options, history({0, 0}, {1, 2, 2, 2})),
            (std::vector<float>{1.0f, 0.5f, -0.5f}));
  options.frequency_penalty = 0.0f;
  options.presence_penalty = 0.25f;
  EXPECT_EQ(penalised({1.0f, 1.0f, 1.0f}, options, history({0, 0}, {1, 2, 2, 2})),
            (std::vector<float>{1.0f, 0.75f, 0.75f}));
}

TEST(Penalties, RepetitionComesFirstThenFrequencyAndPresenceThenBias) {
  SamplingOptions options;
  options.repetition_penalty = 2.0f;
  options.frequency_penalty = 0.5f;
  options.presence_penalty = 0.25f;
  options.logit_bias = {{0, 10.0f}, {1, -100.0f}};
  // 4 / 2 - 2 * 0.5 - 0.25 + 10; 1 - 100
  EXPECT_EQ(penalised({4.0f, 1.0f, 7.0f}, options, history({}, {0, 0})),
            (std::vector<float>{10.75f, -99.0f, 7.0f}));
}

TEST(Penalties, MinusInfinityStaysAndNothingBecomesNan) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  SamplingOptions options;
  options.repetition_penalty = 1.5f;
  options.frequency_penalty = -2.0f;
  options.logit_bias = {{0, 100.0f}};
  EXPECT_EQ(penalised({-kInfinity}, options, history({}, {0})), (std::vector<float>{-kInfinity}));
}

TEST(Penalties, KnowWhenTheyChangeNothing) {
  SamplingOptions options;
  const TokenHistory seen = history({1}, {2});
  EXPECT_FALSE(changes_logits(options, seen));
  options.presence_penalty = 0.1f;
  EXPECT_TRUE(changes_logits(options, seen));
  EXPECT_FALSE(changes_logits(options, TokenHistory()));
  options = {};
  options.logit_bias = {{0, 1.0f}};
  EXPECT_TRUE(changes_logits(options, TokenHistory()));
}

}  // namespace
}  // namespace paceline
