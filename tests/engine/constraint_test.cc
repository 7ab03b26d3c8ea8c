// Requests whose output is under a constraint.
#include <gmock/gmock.h>

#include <limits>

#include "tests/engine/constraints.h"
#include "tests/engine/script_drafter.h"
#include "tests/expect_error.h"

namespace paceline::testing {
namespace {

using Ids = std::vector<TokenId>;

class ConstraintTest : public EngineTest {
 protected:
  GenerateRequest under(const std::string& pattern, int64_t max_tokens = 12) {
    GenerateRequest request = greedy({0}, max_tokens);
    request.constraint = regex_constraint(pattern);
    return request;
  }
  std::string text_of(const Answer& got) {
    std::string text;
    for (const TokenId id : got.tokens) text += letter(id).bytes;
    return text;
  }
};

TEST_F(ConstraintTest, TheDrawIsMasked) {
  engine();
  // The model counts up: b c d ...; where it can't, the lowest allowed letter has the argmax.
  EXPECT_EQ(text_of(run(under("bc[x-z]{2}(q|d)k*", 7))), "bcxydkkk") << "bc is one token";
  EXPECT_EQ(answers_.rbegin()->second.ending->finish.reason, FinishReason::length)
      << "k* may go on for ever: the end token isn't the likeliest";
}

TEST_F(ConstraintTest, TheEndComesWhereTheTextMayEndAndNowhereElse) {
  engine();
  GenerateRequest request = under("[a-z]{3,}");
  request.sampling.logit_bias = {{kEos, 100.0f}};
  const Answer& got = run(request);
  EXPECT_EQ(text_of(got), "bcd");
  EXPECT_EQ(got.ending->finish.reason, FinishReason::stop);
  EXPECT_EQ(got.ending->stats.output_tokens, 4) << "the end is drawn";

  request = under("[a-z]{3,}");
  request.stop_token_ids = {2};  // it writes c, but ends the text
  request.sampling.logit_bias = {{2, 50.0f}};
  const Answer& stopped = run(request);
  EXPECT_EQ(text_of(stopped), "bab") << "c is the likeliest, but the text can't end before";
  EXPECT_EQ(stopped.ending->finish.stop_token, 2);
}

TEST_F(ConstraintTest, ATextThatIsWholeEndsWithoutADraw) {
  engine();
  for (const bool ignores : {false, true}) {
    GenerateRequest request = under("[xyz]{2}");
    request.ignore_eos = ignores;
    const Answer& got = run(request);
    EXPECT_EQ(text_of(got), "xy");
    EXPECT_EQ(got.ending->finish.reason, FinishReason::stop);
    EXPECT_EQ(got.ending->stats.output_tokens, 2);
  }
  GenerateRequest cut = under("[xyz]{5}", 3);
  EXPECT_EQ(run(cut).ending->finish.reason, FinishReason::length);
}

TEST_F(ConstraintTest, ForcedTokensAreComputedTogether) {
  Shape shape;
  shape.limits.max_batched_tokens = 16;
  for (const bool forces : {true, false}) {
    engine(shape);
    const int64_t runs_before = runner_.num_runs;
    GenerateRequest request = greedy({0}, 12);
    request.constraint = regex_constraint("[k-m]defxghq[a-c]", forces);
    request.want_logprobs = true;
    const Answer& got = run(request);
    EXPECT_EQ(text_of(got), "kdefxghqa") << "q is followed by r, which may not come";
    EXPECT_EQ(runner_.num_runs - runs_before, forces ? 2 : 9);
    EXPECT_EQ(engine_->counters().constraints.forced_tokens, forces ? 7 : 0);
    EXPECT_EQ(engine_->counters().speculation.drafts, 0);
    // Log-probabilities are the model's: e follows d with certainty.
    EXPECT_NEAR(got.logprobs.at(2), 0.0f, 1e-3f);
    EXPECT_LT(got.logprobs.at(1), -10.0f);
  }
}

TEST_F(ConstraintTest, ForcedTokensObeyStopsAndLimits) {
  engine();
  GenerateRequest request = under("defghi");
  request.stop_strings = {"fg"};
  EXPECT_EQ(run(request).releasable.back(), 2);
  request = under("defghi", 4);
  const Answer& got = run(request);
  EXPECT_EQ(text_of(got), "defg");
  EXPECT_EQ(got.ending->finish.reason, FinishReason::length);
  request = under("bcxy");
  request.n = 3;
  const RequestId id = submit(request);
  run_all();
  for (const int32_t choice : {0, 1, 2}) EXPECT_EQ(text_of(answer(id, choice)), "bcxy");
}

TEST_F(ConstraintTest, WhatForbidsEverythingFailsTheRequestByName) {
  engine();
  using ::testing::HasSubstr;
  GenerateRequest request = under("(ab|ac)d");
  request.allowed_token_ids = {0, 3};
  const Answer& got = run(request);
  EXPECT_EQ(text_of(got), "a");
  EXPECT_EQ(got.ending->error->code, ErrorCode::invalid);
  EXPECT_THAT(got.ending->error->message, HasSubstr("the constraint leaves no token"));
  EXPECT_THAT(got.ending->error->message, HasSubstr("allowed_token_ids"));

  request = under("dec");
  request.sampling.logit_bias = {{4, -std::numeric_limits<float>::infinity()}};
  EXPECT_EQ(run(request).ending->error->code, ErrorCode::invalid)
      << "a forbidden token isn't forced";

  request = under("abc");
  request.min_tokens = 5;
  EXPECT_THAT(run(request).ending->error->message, HasSubstr("min_tokens is 5"));
  request = under("a?");
  request.min_tokens = 2;
  EXPECT_EQ(run(request).ending->error->code, ErrorCode::invalid);
  request.min_tokens = 0;
  request.max_tokens = 0;
  expect_error(ErrorCode::invalid, {"max_tokens", "constraint"},
               [&] { engine_->submit(request, channel_); });
}

TEST_F(ConstraintTest, ATextThatIsTooComplexFailsAlone) {
  engine();
  GenerateRequest request = greedy({0}, 12);
  request.constraint = std::make_shared<Constraint>(
      compile_constraint({.kind = ConstraintSpec::Kind::regex, .text = "[a-z]{3}(abc|xyz)*"}),
      letter_trie(), WalkerLimits{.max_lexer_states = 4});
  const RequestId bad = submit(request);
  const RequestId good = submit(under("bcd"));
  run_all();
  EXPECT_EQ(answer(bad).ending->error->code, ErrorCode::invalid);
  EXPECT_THAT(answer(bad).ending->error->message, ::testing::HasSubstr("too complex"));
  EXPECT_EQ(text_of(answer(good)), "bcd");
}

TEST_F(ConstraintTest, DraftsAreCutWhereTheConstraintForbidsThem) {
  ScriptDrafter drafter(kVocab, count_up, [](int64_t) { return false; });
  Shape shape;
  shape.limits.max_batched_tokens = 16;
  shape.limits.speculation = {.num_tokens = 4, .adapts = false};
  shape.drafter = &drafter;
  engine(shape);
  GenerateRequest request = greedy({0}, 8);
  request.constraint = regex_constraint("([a-d]|x[e-h])*", false);
  EXPECT_EQ(text_of(run(request)), "bcdabcda");
  const SpeculationCounters& counters = engine_->counters().speculation;
  EXPECT_GT(counters.drafted_tokens, 0);
  EXPECT_EQ(counters.accepted_tokens, counters.drafted_tokens)
      << "e may not follow d, so nothing is drafted from there on";
}

// Behind l the mask allows b and bc; but only bcx can follow, and the tokenizer writes bc as one
// token.
TEST_F(ConstraintTest, WhatIsForcedBehindADraftedTokenIsForcedInsideTheDraftToo) {
  for (const bool drafts : {false, true}) {
    ScriptDrafter drafter(kVocab, count_up, [](int64_t) { return false; });
    drafter.heeds_masks = false;
    Shape shape;
    shape.limits.max_batched_tokens = 16;
    shape.limits.speculation = {.num_tokens = 4, .adapts = false};
    if (drafts) shape.drafter = &drafter;
    engine(shape);
    GenerateRequest request = under("[k-n][lr]bcx[h-k]z", 16);
    request.prompt = {9};
    EXPECT_EQ(run(request).tokens, (Ids{10, 11, 27, 23, 7, 25})) << drafts;
    EXPECT_EQ(engine_->counters().speculation.accepted_tokens > 0, drafts);
  }
}

TEST_F(ConstraintTest, ADrafterThatHeedsTheMaskHasNothingCutOff) {
  ScriptDrafter drafter(kVocab, count_up, [](int64_t) { return false; });
  Shape shape;
  shape.limits.max_batched_tokens = 16;
  shape.limits.speculation = {.num_tokens = 4, .adapts = false};
  shape.drafter = &drafter;
  int64_t num_runs[2];
  for (const bool heeds : {false, true}) {
    drafter.heeds_masks = heeds;
    engine(shape);
    const int64_t runs_before = runner_.num_runs;
    GenerateRequest request = under("([a-d]|x[e-h])*", 24);
    EXPECT_EQ(text_of(run(request)), "bcdabcdabcdabcdabcdabcda");
    num_runs[heeds ? 1 : 0] = runner_.num_runs - runs_before;
    const SpeculationCounters& counters = engine_->counters().speculation;
    EXPECT_EQ(counters.accepted_tokens, counters.drafted_tokens);
  }
  EXPECT_LT(num_runs[1], num_runs[0]) << "behind d the mask tells it that a follows";
}

}  // namespace
}  // namespace paceline::testing
