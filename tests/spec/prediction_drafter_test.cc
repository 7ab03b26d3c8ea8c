#include "spec/prediction_drafter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "spec/prediction_cursor.h"
#include "tests/test_scale.h"

namespace paceline::testing {
namespace {

using Tokens = std::vector<int32_t>;

Tokens predicted(DraftState& state, const Tokens& tokens, int64_t most) {
  PredictionDrafter drafter;
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

// The proposal after `output`, given the tokens one by one.
Tokens predicted(const Tokens& prediction, const Tokens& output, int64_t most) {
  Tokens tokens = {100, 101};
  const std::unique_ptr<DraftState> state = PredictionDrafter().begin(tokens, prediction);
  for (const int32_t token : output) {
    predicted(*state, tokens, 1);
    tokens.push_back(token);
  }
  return predicted(*state, tokens, most);
}

const Tokens kPrediction = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

TEST(PredictionDrafter, BeginsAtTheFirstToken) {
  EXPECT_EQ(predicted(kPrediction, {}, 3), (Tokens{1, 2, 3}));
  EXPECT_EQ(predicted({}, {1, 2}, 3), Tokens{});
}

TEST(PredictionDrafter, FollowsTheOutputToTheEnd) {
  EXPECT_EQ(predicted(kPrediction, {1, 2, 3, 4}, 2), (Tokens{5, 6}));
  Tokens output(kPrediction.begin(), kPrediction.end() - 1);
  EXPECT_EQ(predicted(kPrediction, output, 4), Tokens{12});
  output.push_back(12);
  EXPECT_EQ(predicted(kPrediction, output, 4), Tokens{});
  output.push_back(50);
  EXPECT_EQ(predicted(kPrediction, output, 4), Tokens{});
}

TEST(PredictionDrafter, AReplacedTokenIsPassedOver) {
  EXPECT_EQ(predicted(kPrediction, {1, 2, 50}, 2), (Tokens{4, 5}));
  EXPECT_EQ(predicted(kPrediction, {1, 2, 50, 4, 5}, 2), (Tokens{6, 7}));
}

TEST(PredictionDrafter, AnAddedTokenIsPassedOver) {
  EXPECT_EQ(predicted(kPrediction, {1, 2, 50, 3}, 2), (Tokens{4, 5}));
}

TEST(PredictionDrafter, ATokenLeftOutIsPassedOver) {
  EXPECT_EQ(predicted(kPrediction, {1, 2, 4}, 2), (Tokens{5, 6}));
}

TEST(PredictionDrafter, FindsItsPlaceAfterALongAddition) {
  Tokens output = {1, 2, 3};
  for (int32_t i = 0; i < 40; ++i) output.push_back(200 + i);
  EXPECT_EQ(predicted(kPrediction, output, 2), Tokens{});
  output.insert(output.end(), {4, 5});
  EXPECT_EQ(predicted(kPrediction, output, 2), (Tokens{6, 7}));
}

TEST(PredictionDrafter, FindsItsPlaceWhenMuchIsLeftOutOrRepeated) {
  EXPECT_EQ(predicted(kPrediction, {1, 2, 9, 10}, 2), (Tokens{11, 12}));
  EXPECT_EQ(predicted(kPrediction, {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2}, 2), (Tokens{3, 4}));
}

TEST(PredictionDrafter, OfEqualPlacesTheNearestAfterTheCursorCounts) {
  const Tokens prediction = {1, 2, 30, 4, 5, 6, 7, 8, 9, 10, 1, 2, 31, 4, 5, 6, 7, 1, 2, 32};
  Tokens output = {1, 2, 30, 4, 5, 6};
  for (int32_t i = 0; i < 20; ++i) output.push_back(200 + i);
  output.insert(output.end(), {1, 2});
  EXPECT_EQ(predicted(prediction, output, 1), Tokens{32});  // 20 replaced tokens: the last place
  output = {1, 2, 30, 4, 5, 6, 50, 51, 1, 2};
  EXPECT_EQ(predicted(prediction, output, 1), Tokens{31});
}

TEST(PredictionDrafter, OfEqualPlacesTheOneWhereTheCursorWouldBeComesFirst) {
  Tokens prediction;
  for (int32_t i = 0; i < 60; ++i) prediction.push_back(100 + i);
  prediction[40] = prediction[50] = 7;
  prediction[41] = prediction[51] = 8;
  Tokens output(prediction.begin(), prediction.begin() + 10);
  for (int32_t i = 0; i < 30; ++i) output.push_back(200 + i);  // as many as they replace
  output.insert(output.end(), {7, 8});
  EXPECT_EQ(predicted(prediction, output, 1), Tokens{142});
}

TEST(PredictionDrafter, TheLongestMatchCountsBeforeTheNearest) {
  const Tokens prediction = {1, 2, 3, 4, 5, 6, 7, 3, 60, 61, 62, 63, 64, 2, 3, 70};
  EXPECT_EQ(predicted(prediction, {1, 2, 3, 4, 90, 91, 92, 93, 64, 2, 3}, 1), Tokens{70});
}

TEST(PredictionDrafter, ASequenceThatBeginsAgainGoesOn) {
  Tokens prompt = {100, 101};
  prompt.insert(prompt.end(), kPrediction.begin(), kPrediction.begin() + 9);
  const std::unique_ptr<DraftState> state = PredictionDrafter().begin(prompt, kPrediction);
  EXPECT_EQ(predicted(*state, prompt, 2), (Tokens{10, 11}));
  prompt.push_back(10);
  EXPECT_EQ(predicted(*state, prompt, 2), (Tokens{11, 12}));
}

// An answer that edits `share` of the prediction's tokens.
Tokens edited(std::mt19937& random, const Tokens& prediction, double share, uint32_t alphabet) {
  Tokens answer;
  for (const int32_t token : prediction) {
    const bool edits = random() < share * 4294967296.0;
    const uint32_t kind = edits ? random() % 3 : 3;
    if (kind != 0) answer.push_back(kind == 1 ? static_cast<int32_t>(random() % alphabet) : token);
    if (kind == 2) answer.push_back(static_cast<int32_t>(random() % alphabet));
  }
  return answer;
}

// Of the answer's tokens the share that the first proposed token was.
double share_proposed(const Tokens& prediction, const Tokens& answer) {
  PredictionCursor cursor(prediction, {});
  int64_t num_right = 0;
  for (size_t n = 0; n < answer.size(); ++n) {
    cursor.advance(std::span(answer).first(n));
    num_right += !cursor.rest().empty() && cursor.rest().front() == answer[n];
  }
  return static_cast<double>(num_right) / static_cast<double>(answer.size());
}

TEST(PredictionDrafterProperty, MostTokensOfAnEditedTextAreProposed) {
  const int num_rounds = scaled(30, 3'000);
  for (const uint32_t alphabet : {16u, 200u, 150'000u}) {
    double least = 1;
    for (int round = 0; round < num_rounds; ++round) {
      std::mt19937 random(static_cast<uint32_t>(round));
      Tokens prediction;
      for (int i = 0; i < 2'000; ++i)
        prediction.push_back(static_cast<int32_t>(random() % alphabet));
      const Tokens answer = edited(random, prediction, 0.05, alphabet);
      least = std::min(least, share_proposed(prediction, answer));
    }
    EXPECT_GT(least, 0.85) << "alphabet of " << alphabet;
  }
}

TEST(PredictionDrafter, ATokenThatAgreesIsOneOperation) {
  const Tokens text = {5, 6, 7, 8, 9};
  PredictionCursor cursor(text, {});
  const int64_t before = cursor.num_operations();
  cursor.advance(text);
  EXPECT_EQ(cursor.num_operations() - before, 5);
}

TEST(PredictionDrafterProperty, WorkPerTokenDoesNotGrowWithTheText) {
  for (const int32_t alphabet : {1, 2, 50'000}) {
    // At most 16 places in each direction, of 8 tokens and the one that differs.
    for (const size_t size : {1'000, 100'000}) {
      std::mt19937 random(3);
      Tokens prediction;
      Tokens answer;  // never in step for long
      for (size_t i = 0; i < size; ++i) {
        prediction.push_back(static_cast<int32_t>(random()) % alphabet);
        answer.push_back(random() % 2 == 0 ? prediction.back() : -1 - prediction.back());
      }
      PredictionCursor cursor(prediction, {});
      int64_t most = 0;
      for (size_t n = 1; n <= size; ++n) {
        const int64_t before = cursor.num_operations();
        cursor.advance(std::span(answer).first(n));
        most = std::max(most, cursor.num_operations() - before);
      }
      EXPECT_LT(most, 2 * 16 * 9 + 40) << "alphabet of " << alphabet << ", " << size << " tokens";
    }
  }
}

}  // namespace
}  // namespace paceline::testing
