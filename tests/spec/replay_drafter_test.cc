#include "spec/replay_drafter.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "tests/expect_error.h"
#include "tests/spec/scripted_drafters.h"

namespace paceline::testing {
namespace {

using Tokens = std::vector<int32_t>;

constexpr int64_t kVocabSize = 30'000;

Tokens drafted_by(Drafter& drafter, DraftState& state, const Tokens& tokens, int64_t most) {
  Draft draft;
  const DraftRequest request = {.state = &state, .tokens = tokens, .most = most, .draft = &draft};
  drafter.propose({&request, 1});
  return draft.tokens;
}

Tokens drafted_by(Drafter& drafter, const Tokens& tokens, int64_t most) {
  return drafted_by(drafter, *drafter.begin(tokens, {}), tokens, most);
}

ReplayOptions replaying(const RecordedAnswers& answers, double wrong_probability) {
  return {.answer = [&answers](std::span<const int32_t> text) { return answers.after(text); },
          .wrong_probability = wrong_probability,
          .seed = 7,
          .vocab_size = kVocabSize};
}

Tokens counted(int32_t first, size_t count) {
  Tokens tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

TEST(ReplayDrafter, ProposesTheAnswerOfThePrompt) {
  RecordedAnswers answers;
  answers.add(Tokens{1, 2}, Tokens{10, 11, 12, 13});
  answers.add(Tokens{1, 3}, Tokens{20, 21});
  ReplayDrafter drafter(replaying(answers, 0.0));
  const std::unique_ptr<DraftState> state = drafter.begin(Tokens{1, 2}, {});
  EXPECT_EQ(drafted_by(drafter, *state, {1, 2}, 3), (Tokens{10, 11, 12}));
  EXPECT_EQ(drafted_by(drafter, *state, {1, 2, 10, 99}, 3), (Tokens{12, 13}));
  EXPECT_EQ(drafter.prospects(*state, Tokens{1, 2, 10, 99}, 3), 2);
  EXPECT_EQ(drafted_by(drafter, *state, {1, 2, 10, 11, 12, 13, 14}, 3), Tokens{});
  EXPECT_EQ(drafted_by(drafter, {1, 3}, 5), (Tokens{20, 21}));
  EXPECT_EQ(drafted_by(drafter, {1, 4}, 5), Tokens{});
}

TEST(ReplayDrafter, TheFirstRecordedTextCountsEvenWhereItEnds) {
  RecordedAnswers answers;
  answers.add(Tokens{1, 2}, Tokens{10});
  answers.add(Tokens{1, 2, 10}, Tokens{20});
  EXPECT_EQ(answers.after(Tokens{1, 2}).size(), 1u);
  EXPECT_TRUE(answers.after(Tokens{1, 2, 10}).empty());
}

TEST(ReplayDrafter, TokensAreWrongWithTheProbabilityWhateverTheBatch) {
  RecordedAnswers answers;
  const Tokens answer = counted(0, kVocabSize);
  answers.add(Tokens{5}, answer);
  ReplayDrafter drafter(replaying(answers, 0.3));
  const Tokens whole = drafted_by(drafter, {5}, kVocabSize);
  ASSERT_EQ(whole.size(), answer.size());
  int64_t num_wrong = 0;
  for (size_t i = 0; i < answer.size(); ++i) {
    const int32_t wrong = (answer[i] + 1) % kVocabSize;
    EXPECT_TRUE(whole[i] == answer[i] || whole[i] == wrong);
    num_wrong += whole[i] == wrong;
  }
  EXPECT_NEAR(static_cast<double>(num_wrong) / kVocabSize, 0.3, 0.02);

  Tokens tokens = {5};
  const std::unique_ptr<DraftState> state = drafter.begin(tokens, {});
  for (size_t i = 0; i < 100; ++i) {
    const Tokens from_here(whole.begin() + static_cast<int64_t>(i),
                           whole.begin() + static_cast<int64_t>(i) + 4);
    EXPECT_EQ(drafted_by(drafter, *state, tokens, 4), from_here);
    EXPECT_EQ(drafted_by(drafter, tokens, 4), from_here) << "a sequence that begins again";
    tokens.push_back(answer[i]);
  }
}

int32_t next_token(int32_t token, int64_t position) {
  return static_cast<int32_t>((7 * token + position) % kVocabSize);
}

TEST(ScriptedDrafters, AreRightOrWrongAsNamed) {
  RightDrafter right(next_token);
  WrongDrafter wrong(kVocabSize, next_token);
  const Tokens tokens = {4, 9};
  const Tokens expected = {64, 450};  // 7 * 9 + 1, 7 * 64 + 2
  EXPECT_EQ(drafted_by(right, tokens, 2), expected);
  EXPECT_EQ(drafted_by(wrong, tokens, 1), Tokens{65});
  RandomDrafter random(kVocabSize, next_token, 1);
  size_t num_tokens = 0;
  for (int i = 0; i < 100; ++i) num_tokens += drafted_by(random, tokens, 4).size();
  EXPECT_GT(num_tokens, 100u);
  EXPECT_LT(num_tokens, 300u);
}

TEST(ScriptedDrafters, FailAsNamed) {
  const Tokens tokens = {4, 9};
  ThrowingDrafter second(next_token, 2);
  EXPECT_EQ(drafted_by(second, tokens, 2).size(), 2u);
  expect_error(ErrorCode::internal, {"propose() fails"}, [&] { drafted_by(second, tokens, 2); });
  EXPECT_EQ(drafted_by(second, tokens, 2).size(), 2u);
  ThrowingInBegin first(next_token, 1);
  expect_error(ErrorCode::exhausted, {"begin() fails"}, [&] { first.begin(tokens, {}); });
  UnlawfulDrafter many(next_token, UnlawfulDrafter::Fault::too_many);
  EXPECT_EQ(drafted_by(many, tokens, 2).size(), 5u);
  UnlawfulDrafter outside(next_token, UnlawfulDrafter::Fault::outside_vocabulary);
  const Tokens proposed = drafted_by(outside, tokens, 6);
  EXPECT_EQ(proposed[2], INT32_MAX);
  EXPECT_EQ(proposed[5], -1);
}

}  // namespace
}  // namespace paceline::testing
