// The engine carries out the policy's decisions: preemption, resumption, shared and held prefixes.
#include <gtest/gtest.h>

#include <string>

#include "tests/engine/engine_fixture.h"
#include "tests/expect_error.h"

namespace paceline::testing {
namespace {

using Ids = std::vector<TokenId>;

EngineLimits wide() { return {.max_model_len = 64, .max_batched_tokens = 64}; }

TEST_F(EngineTest, PreemptsWhenBlocksRunOut) {
  engine({.num_blocks = 6, .block_size = 1, .limits = wide()});
  const RequestId first = submit(greedy({1, 2}, 4));
  const RequestId second = submit(greedy({3, 4}, 4));
  step();
  step();
  EXPECT_EQ(engine_->counters().preemptions, 0);
  step();
  EXPECT_EQ(engine_->counters().preemptions, 1) << "the third step evicts the second";
  run_all();
  EXPECT_EQ(answer(first).tokens, (Ids{3, 4, 5, 6}));
  EXPECT_EQ(answer(second).tokens, (Ids{5, 6, 7, 8}));
  EXPECT_EQ(answer(first).ending->stats.preemptions, 0);
  EXPECT_EQ(answer(second).ending->stats.preemptions, 1);
}

TEST_F(EngineTest, PreemptedSequenceResumesLater) {
  engine({.num_blocks = 6, .block_size = 1, .limits = wide()});
  submit(greedy({1, 2}, 4));
  const RequestId second = submit(greedy({3, 4}, 4));
  for (int i = 0; i < 3; ++i) step();
  const RequestId fresh = submit(greedy({9, 10}, 4));
  EXPECT_EQ(answer(second).tokens, (Ids{5, 6}));
  while (answers_.count({fresh, 0}) == 0) step();
  EXPECT_GE(answer(second).tokens.size(), 3u) << "it resumed before the fresh one began";
  run_all();
  EXPECT_EQ(answer(second).tokens, (Ids{5, 6, 7, 8}));
}

TEST_F(EngineTest, AdmissionBlocksWhenPromptDoesNotFit) {
  engine({.num_blocks = 6, .block_size = 1, .limits = wide()});
  submit(greedy({1, 2, 3, 4}, 2));
  submit(greedy({5, 6, 7}, 1));
  step();
  EXPECT_EQ(engine_->num_running(), 1);
  EXPECT_EQ(engine_->num_waiting(), 1);
  EXPECT_EQ(free_blocks(), 2);
  run_all();
}

TEST_F(EngineTest, ASecondRequestFindsTheFirstOnesPrompt) {
  engine({.limits = wide()});
  Ids prompt(20, 3);
  run(greedy(prompt, 3));
  const int64_t rows = runner_.num_rows;
  const Answer& again = run(greedy(prompt, 3));
  EXPECT_EQ(again.ending->stats.cached_tokens, 18) << "whole blocks below the last token";
  EXPECT_EQ(runner_.num_rows - rows, 2 + 2);
  EXPECT_EQ(again.tokens, (Ids{4, 5, 6}));
}

TEST_F(EngineTest, RequestsThatComeTogetherComputeTheirPrefixOnce) {
  engine({.num_blocks = 200, .limits = {.max_model_len = 64, .max_batched_tokens = 32}});
  for (int i = 0; i < 5; ++i) {
    Ids prompt(30, 3);
    prompt.push_back(i);
    submit(greedy(prompt, 1));
  }
  run_all();
  EXPECT_EQ(runner_.num_rows, 31 + 4);
}

TEST_F(EngineTest, AnotherSaltOrAdapterFindsNothing) {
  engine({.limits = wide()});
  GenerateRequest request = greedy(Ids(20, 3), 1);
  run(request);
  request.prefix.scope.salt.low = 1;
  EXPECT_EQ(run(request).ending->stats.cached_tokens, 0);
  request.prefix.scope = {.adapter = 1};
  EXPECT_EQ(run(request).ending->stats.cached_tokens, 0);
  request.prefix.scope = {};
  EXPECT_EQ(run(request).ending->stats.cached_tokens, 18);
}

TEST_F(EngineTest, ARequestThatLeavesNothingBehind) {
  engine({.limits = wide()});
  GenerateRequest request = greedy(Ids(20, 3), 1);
  request.prefix.write = PrefixUse::Write::none;
  run(request);
  EXPECT_EQ(cache_->pool(0).num_cached(), 0);
  request.prefix.write = PrefixUse::Write::while_held;
  run(request);
  EXPECT_EQ(cache_->pool(0).num_cached(), 0);
  EXPECT_EQ(run(request).ending->stats.cached_tokens, 0);
}

TEST_F(EngineTest, AHeldPrefixStaysUntilItIsReleased) {
  engine({.num_blocks = 16, .limits = wide()});
  GenerateRequest hold = greedy(Ids(8, 3), 0);
  hold.prefix = {.write = PrefixUse::Write::while_held, .hold = true};
  const RequestId id = submit(hold);
  run_all();
  EXPECT_EQ(free_blocks(), 12);
  for (int i = 0; i < 4; ++i) run(greedy(Ids(20, i + 5), 3));  // would evict anything not held
  EXPECT_EQ(run(greedy(Ids(12, 3), 1)).ending->stats.cached_tokens, 8);
  engine_->release(id);
  run_all();
  EXPECT_EQ(free_blocks(), 16);
}

TEST_F(EngineTest, AHeldPrefixGivesWayBeforeARequestFails) {
  engine({.num_blocks = 8, .limits = wide()});
  GenerateRequest hold = greedy(Ids(8, 3), 0);
  hold.prefix.hold = true;
  submit(hold);
  run_all();
  EXPECT_EQ(run(greedy(Ids(12, 9), 3)).tokens, (Ids{10, 11, 12}));
  EXPECT_EQ(engine_->counters().dropped_holds, 1);
}

TEST_F(EngineTest, AWindowedGroupFindsWhatItsWindowNeeds) {
  engine({.limits = wide(), .groups = {{.num_blocks = 40}, {.window = 5, .num_blocks = 40}}});
  run(greedy(Ids(20, 3), 3));
  const Answer& again = run(greedy(Ids(24, 3), 3));
  EXPECT_GE(again.ending->stats.cached_tokens, 18);
  EXPECT_EQ(again.tokens, (Ids{4, 5, 6}));
}

TEST_F(EngineTest, CancellingChoicesFreesThemAll) {
  for (int32_t n = 1; n <= 16; ++n) {
    engine({.num_blocks = 200, .limits = wide()});
    GenerateRequest request = greedy({1, 2, 3, 4, 5}, 30);
    request.n = n;
    const RequestId id = submit(request);
    for (int i = 0; i < n % 4; ++i) step();
    engine_->cancel(id);
    run_all();
    EXPECT_EQ(engine_->num_running(), 0);
    EXPECT_EQ(free_blocks(), 200);
    for (int32_t k = 0; k < n; ++k) {
      EXPECT_EQ(answer(id, k).ending->finish.reason, FinishReason::cancelled);
    }
    answers_.clear();
  }
}

TEST_F(EngineTest, ChoicesBeyondTheBatchWaitForAPlace) {
  engine({.limits = {.max_model_len = 64, .max_batched_tokens = 64, .max_num_seqs = 2}});
  GenerateRequest request = greedy({1, 2, 3, 4, 5}, 3);
  request.n = 5;
  const RequestId id = submit(request);
  run_all();
  for (int32_t k = 0; k < 5; ++k) EXPECT_EQ(answer(id, k).tokens, (Ids{6, 7, 8}));
}

}  // namespace
}  // namespace paceline::testing
