// Restrictions on drawn tokens, and which tokens are part of the text.
#include <gmock/gmock.h>

#include "tests/engine/engine_fixture.h"
#include "tests/expect_error.h"

namespace paceline::testing {
namespace {

using Ids = std::vector<TokenId>;

TEST_F(EngineTest, OnlyAllowedTokensAreDrawnAndNoneThatCompletesABannedSequence) {
  engine();
  GenerateRequest request = greedy({0}, 5);
  request.allowed_token_ids = {1, 2, 3, 9};
  request.banned_sequences = {{2, 3}, {9, 9, 1}};
  request.sampling.logit_bias = {{9, 0.5f}};
  request.n = 2;
  const RequestId id = submit(std::move(request));
  run_all();
  // 2 would be followed by 3, which is banned behind it, and 9 by 10, which isn't allowed.
  for (const int32_t choice : {0, 1}) EXPECT_EQ(answer(id, choice).tokens, (Ids{1, 2, 9, 9, 9}));
}

// Token t is followed by t + 1.
TEST_F(EngineTest, SomeTokensArentDrawnAsTheFirstOnly) {
  engine();
  GenerateRequest request = greedy({0}, 4);
  request.not_first = {1};
  request.sampling.logit_bias = {{0, 0.5f}};
  EXPECT_EQ(run(request).tokens, (Ids{0, 1, 2, 3}));
  request.sampling.logit_bias = {{1, 0.5f}, {9, 0.25f}};
  request.eos_tokens = {10};
  request.min_tokens = 2;
  EXPECT_EQ(run(request).tokens[0], 9);
  EXPECT_NE(run(request).tokens[1], 10) << "min_tokens holds after the first token too";
  request.not_first = {32};
  expect_error(ErrorCode::invalid, {"not_first[0]", "32"}, [&] { engine_->check(request); });
}

TEST_F(EngineTest, ARequestThatForbidsEverythingSaysSo) {
  engine();
  GenerateRequest request = greedy({0}, 5);
  request.allowed_token_ids = {1, 2};
  request.banned_sequences = {{2}, {1, 1}};
  const Answer& got = run(std::move(request));
  EXPECT_EQ(got.tokens, (Ids{1}));
  EXPECT_EQ(got.ending->error->code, ErrorCode::invalid);
  EXPECT_THAT(got.ending->error->message, ::testing::HasSubstr("allowed_token_ids"));
  expect_error(ErrorCode::invalid, {"allowed_token_ids[1]", "32"}, [&] {
    GenerateRequest beyond = greedy({0}, 5);
    beyond.allowed_token_ids = {0, 32};
    engine_->submit(std::move(beyond), channel_);
  });
}

TEST_F(EngineTest, SpecialTokensMayBePartOfTheText) {
  engine();
  for (const SpecialTokens specials : {SpecialTokens::hidden, SpecialTokens::shown}) {
    GenerateRequest request = greedy({29}, 2);
    request.ignore_eos = true;
    request.specials = specials;
    request.stop_strings = {"0>"};  // of <30>
    const Answer& got = run(std::move(request));
    const bool is_shown = specials == SpecialTokens::shown;
    EXPECT_EQ(got.tokens, is_shown ? (Ids{30}) : (Ids{30, 31}));
    EXPECT_EQ(got.releasable.back(), is_shown ? 2 : 0);
  }
}

}  // namespace
}  // namespace paceline::testing
