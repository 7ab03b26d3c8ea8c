#include "spec/ngram_drafter.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "spec/token_index.h"
#include "tests/expect_error.h"

namespace paceline::testing {
namespace {

using Tokens = std::vector<int32_t>;

Tokens looked_up(Drafter& drafter, DraftState& state, const Tokens& tokens, int64_t most) {
  Draft draft;
  const DraftRequest request = {.state = &state,
                                .tokens = tokens,
                                .most = most,
                                .wants_distributions = true,
                                .draft = &draft};
  drafter.propose({&request, 1});
  EXPECT_TRUE(draft.distributions.empty());
  EXPECT_EQ(static_cast<int64_t>(draft.tokens.size()), drafter.prospects(state, tokens, most));
  return draft.tokens;
}

Tokens looked_up(const Tokens& tokens, int64_t most, const PromptLookupOptions& options = {}) {
  NgramDrafter drafter(options);
  return looked_up(drafter, *drafter.begin(tokens, {}), tokens, most);
}

TEST(NgramDrafter, ProposesWhatFollowedTheLongestMatch) {
  EXPECT_EQ(looked_up({1, 2, 3, 40, 41, 9, 2, 3, 50, 51, 1, 2, 3}, 2), (Tokens{40, 41}));
}

TEST(NgramDrafter, OfEquallyLongMatchesTheLastOneCounts) {
  EXPECT_EQ(looked_up({1, 2, 40, 8, 1, 2, 50, 9, 1, 2}, 2), (Tokens{50, 9}));
}

TEST(NgramDrafter, ProposesNothingForNewText) {
  EXPECT_EQ(looked_up({1, 2, 3, 4, 5, 3}, 4), Tokens{});
  EXPECT_EQ(looked_up({}, 4), Tokens{});
  EXPECT_EQ(looked_up({5}, 4), Tokens{});
}

TEST(NgramDrafter, TheShortestMatchIsAnOption) {
  EXPECT_EQ(looked_up({3, 4, 5, 3}, 2, {.min_length = 1, .max_length = 3}), (Tokens{4, 5}));
  EXPECT_EQ(looked_up({2, 3, 4, 5, 2, 3}, 2, {.min_length = 3, .max_length = 3}), Tokens{});
}

TEST(NgramDrafter, PeriodicTextGoesOnBeyondItsEnd) {
  EXPECT_EQ(looked_up({1, 2, 3, 1, 2}, 8), (Tokens{3, 1, 2, 3, 1, 2, 3, 1}));
  EXPECT_EQ(looked_up({6, 6, 6}, 5), (Tokens{6, 6, 6, 6, 6}));
}

TEST(NgramDrafter, ASequenceThatBeginsAgainProposesTheSame) {
  NgramDrafter drafter({});
  const Tokens prompt = {1, 2, 3, 4, 9};
  Tokens tokens = prompt;
  std::unique_ptr<DraftState> state = drafter.begin(prompt, {});
  EXPECT_EQ(looked_up(drafter, *state, tokens, 3), Tokens{});
  tokens.insert(tokens.end(), {1, 2});
  EXPECT_EQ(looked_up(drafter, *state, tokens, 3), (Tokens{3, 4, 9}));
  state = drafter.begin(tokens, {});
  EXPECT_EQ(looked_up(drafter, *state, tokens, 3), (Tokens{3, 4, 9}));
  tokens.insert(tokens.end(), {3, 4});
  EXPECT_EQ(looked_up(drafter, *state, tokens, 3), (Tokens{9, 1, 2}));
}

TEST(NgramDrafter, RejectsLengthsOutOfRange) {
  const auto make = [](int64_t min, int64_t max) {
    return [=] { NgramDrafter(PromptLookupOptions{.min_length = min, .max_length = max}); };
  };
  expect_error(ErrorCode::invalid, {"--prompt-lookup-min is 6", "--prompt-lookup-max is 5"},
               make(6, 5));
  expect_error(ErrorCode::invalid, {"--prompt-lookup-min is 0"}, make(0, 5));
  expect_error(ErrorCode::invalid, {"<= 16"}, make(2, TokenIndex::kMaxLength + 1));
}

}  // namespace
}  // namespace paceline::testing
