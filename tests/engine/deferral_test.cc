// Deferred requests: they give way to those that wait, and lose nothing by it.
#include <gtest/gtest.h>

#include "engine/sequence.h"
#include "tests/engine/engine_fixture.h"

namespace paceline::testing {
namespace {

using Ids = std::vector<TokenId>;

class DeferralTest : public EngineTest {
 protected:
  void limit_places(int64_t num_places) {
    engine({.limits = {.max_model_len = 64, .max_batched_tokens = 64, .max_num_seqs = num_places}});
  }
  // A request of `num_tokens` that has drawn two of them and is deferred.
  RequestId submit_deferred(int64_t num_tokens) {
    const RequestId id = submit(greedy({1, 2}, num_tokens));
    step();
    step();
    engine_->defer(id);
    return id;
  }
  size_t num_drawn(RequestId id) { return answers_[{id, 0}].tokens.size(); }
  void run_until_ended(RequestId id) {
    while (answers_[{id, 0}].ending == nullptr) ASSERT_TRUE(step());
  }
  int64_t num_deferred_preemptions() const { return engine_->counters().deferred_preemptions; }
};

TEST_F(DeferralTest, ItRunsWhileNobodyWaits) {
  limit_places(1);
  const RequestId slow = submit_deferred(12);
  run_all();
  EXPECT_EQ(engine_->counters().preemptions, 0);
  EXPECT_EQ(answer(slow).tokens.size(), 12u);
}

TEST_F(DeferralTest, ItGivesItsPlaceToOneThatWaits) {
  limit_places(1);
  const RequestId slow = submit_deferred(12);
  const RequestId other = submit(greedy({9}, 3));
  step();
  EXPECT_EQ(num_drawn(slow), 3u) << "the other has not waited for a step yet";
  step();
  EXPECT_EQ(num_deferred_preemptions(), 1);
  EXPECT_EQ(num_drawn(other), 1u);
  run_until_ended(other);
  EXPECT_EQ(num_drawn(slow), 3u);
  run_all();
  EXPECT_EQ(answer(slow).tokens, (Ids{3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}));
  EXPECT_EQ(answer(other).tokens, (Ids{10, 11, 12}));
}

TEST_F(DeferralTest, NoMoreLeaveThanOthersWait) {
  limit_places(3);
  for (int i = 0; i < 3; ++i) submit_deferred(20);
  const RequestId other = submit(greedy({9}, 3));
  run_until_ended(other);
  EXPECT_EQ(num_deferred_preemptions(), 1);
  run_all();
}

TEST_F(DeferralTest, ItGivesItsBlocksToOneThatWaits) {
  engine({.num_blocks = 8, .limits = {.max_model_len = 64, .max_batched_tokens = 64}});
  const RequestId slow = submit(greedy({1, 2}, 12));
  for (int i = 0; i < 8; ++i) step();
  EXPECT_EQ(free_blocks(), 3);
  const RequestId other = submit(greedy(Ids(10, 9), 1));
  step();
  step();
  EXPECT_EQ(num_drawn(other), 0u) << "nobody is deferred yet";
  engine_->defer(slow);
  step();
  EXPECT_EQ(num_deferred_preemptions(), 1);
  EXPECT_EQ(num_drawn(other), 1u);
  run_all();
  EXPECT_EQ(answer(slow).tokens.size(), 12u);
}

// The second prompt waits for rows, of which a preemption would bring it hardly more.
TEST_F(DeferralTest, ItStaysWherePlacesAndBlocksAreFree) {
  engine({.num_blocks = 200, .limits = {.max_model_len = 64, .max_batched_tokens = 4}});
  submit_deferred(30);
  submit(greedy(Ids(20, 9), 1));
  submit(greedy(Ids(20, 8), 1));
  run_all();
  EXPECT_EQ(engine_->counters().preemptions, 0);
}

TEST_F(DeferralTest, ItWaitsBehindEveryClass) {
  limit_places(1);
  const RequestId slow = submit_deferred(12);
  const RequestId first = submit(greedy({9}, 3));
  GenerateRequest of_last_class = greedy({5}, 3);
  of_last_class.priority = 1000;
  const RequestId second = submit(of_last_class);
  run_until_ended(first);
  run_until_ended(second);
  EXPECT_EQ(num_drawn(slow), 3u);
  run_all();
}

TEST_F(DeferralTest, AResumedRequestIsServedInItsTurn) {
  limit_places(1);
  const RequestId slow = submit_deferred(12);
  const RequestId first = submit(greedy({9}, 3));
  const RequestId second = submit(greedy({5}, 3));
  step();
  step();
  engine_->resume(slow);
  run_until_ended(first);
  run_until_ended(slow);
  EXPECT_EQ(num_drawn(second), 0u);
  run_all();
  EXPECT_EQ(num_deferred_preemptions(), 1);
}

TEST_F(DeferralTest, AResumedRequestStaysResumed) {
  limit_places(1);
  const RequestId slow = submit_deferred(12);
  const auto is_deferred = [this] { return engine_->running().front()->is_deferred; };
  step();
  EXPECT_TRUE(is_deferred());
  engine_->resume(slow);
  for (int i = 0; i < 4; ++i) {
    step();
    EXPECT_FALSE(is_deferred()) << i;
  }
  run_all();
}

TEST_F(DeferralTest, AllChoicesAreDeferred) {
  engine({.limits = {.max_model_len = 64, .max_batched_tokens = 4, .max_num_seqs = 3}});
  GenerateRequest request = greedy(Ids(10, 1), 20);
  request.n = 3;
  const RequestId slow = submit(request);
  step();
  engine_->defer(slow);  // before the choices part
  for (int i = 0; i < 4; ++i) step();
  std::vector<RequestId> others;
  for (int i = 0; i < 3; ++i) others.push_back(submit(greedy({9}, 3)));
  for (const RequestId other : others) run_until_ended(other);
  EXPECT_EQ(num_deferred_preemptions(), 3);
  run_all();
  for (int32_t k = 0; k < 3; ++k) EXPECT_EQ(answer(slow, k).tokens.size(), 20u);
}

TEST_F(DeferralTest, OneThatHasEndedIsIgnored) {
  limit_places(1);
  const RequestId slow = submit_deferred(3);
  run_all();
  engine_->defer(slow);
  engine_->resume(slow);
  EXPECT_EQ(run(greedy({9}, 3)).tokens, (Ids{10, 11, 12}));
}

}  // namespace
}  // namespace paceline::testing
