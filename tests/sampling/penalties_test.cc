#include "sampling/penalties.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "tests/test_scale.h"

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

using Counts = std::vector<std::pair<int32_t, int32_t>>;

Counts counts_of(const TokenHistory& seen) {
  Counts counts;
  for (const TokenCount& token : seen.tokens()) counts.emplace_back(token.id, token.in_output);
  return counts;
}

TEST(TokenHistory, CountsOnlyTheOutputAndListsEveryTokenOnce) {
  TokenHistory seen = history({5, 3, 5}, {3, 8, 3, 8, 3});
  EXPECT_EQ(counts_of(seen), (Counts{{5, 0}, {3, 3}, {8, 2}}));
}

TEST(TokenHistory, RemovingOutputsLeavesWhatAHistoryWithoutThemHolds) {
  std::mt19937_64 random(11);
  const auto some_ids = [&](uint64_t most) {
    std::vector<int32_t> ids(random() % (most + 1));
    for (int32_t& id : ids) id = static_cast<int32_t>(random() % 12);
    return ids;
  };
  const int num_rounds = scaled(2000, 200'000);
  for (int round = 0; round < num_rounds; ++round) {
    const std::vector<int32_t> prompt = some_ids(8);
    std::vector<int32_t> output = some_ids(8);
    TokenHistory seen = history(prompt, output);
    for (int turn = 0; turn < 4; ++turn) {  // drafts begin where others were taken back
      for (const int32_t id : some_ids(6)) {
        seen.add_output(id);
        output.push_back(id);
      }
      for (uint64_t left = random() % (output.size() + 1); left > 0; --left) {
        seen.remove_last_output();
        output.pop_back();
      }
      const TokenHistory rebuilt = history(prompt, output);
      ASSERT_EQ(counts_of(seen), counts_of(rebuilt)) << round;
      ASSERT_TRUE(std::ranges::equal(seen.output(), rebuilt.output())) << round;
    }
  }
}

TEST(TokenHistory, APromptTokenStaysWhenItsOutputsAreRemoved) {
  TokenHistory seen = history({4, 5}, {5, 6});
  seen.remove_last_output();
  seen.remove_last_output();
  EXPECT_EQ(counts_of(seen), (Counts{{4, 0}, {5, 0}}));
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
