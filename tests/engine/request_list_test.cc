// The lists of sequences without a runner's steps: their order, places, queue and ends.
#include "engine/request_list.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/engine/engine_fixture.h"

namespace paceline::testing {
namespace {

class RequestListTest : public ::testing::Test {
 protected:
  // Ids count choices.
  RequestId submit(int32_t priority, int32_t n = 1) {
    GenerateRequest request = greedy({1, 2, 3}, 4);
    request.priority = priority;
    request.n = n;
    return intake_.submit(std::move(request), channel_, 0).value_or(-1);
  }
  static std::vector<int64_t> ids(std::span<const std::unique_ptr<Sequence>> list) {
    std::vector<int64_t> ids;
    for (const auto& sequence : list) ids.push_back(sequence->arrival_id);
    return ids;
  }
  using Ids = std::vector<int64_t>;

  const EngineLimits limits_{.max_model_len = 64, .max_batched_tokens = 8, .max_num_seqs = 2};
  ScriptedRunner runner_{kVocab, count_up};
  StateCache cache_{2, std::vector<CacheGroup>{{.num_blocks = 32}}};
  std::shared_ptr<Channel> channel_ = std::make_shared<Channel>();
  StepLog log_;
  RequestIntake intake_{runner_, cache_, limits_};
  RequestList list_{intake_, cache_, limits_, log_};
};

TEST_F(RequestListTest, APreemptedSequenceWaitsBeforeLaterOnesOfItsClass) {
  const RequestId a = submit(1), b = submit(0), c = submit(1);
  list_.take_in();
  EXPECT_EQ(ids(list_.waiting()), (Ids{b, a, c}));
  EXPECT_EQ(intake_.queue().num_sequences(), 3);
  list_.admit(1, 0);
  list_.admit(0, 0);
  list_.compact();
  EXPECT_EQ(ids(list_.running()), (Ids{a, b})) << "in a step those that are admitted come last";
  EXPECT_EQ(list_.room(), 0);
  EXPECT_EQ(intake_.queue().num_sequences(), 1);
  list_.publish();
  EXPECT_EQ(ids(list_.running()), (Ids{b, a}));
  list_.preempt(1);
  EXPECT_EQ(list_.running()[1], nullptr);
  list_.publish();
  EXPECT_EQ(ids(list_.running()), (Ids{b}));
  EXPECT_EQ(ids(list_.waiting()), (Ids{a, c}));
  EXPECT_EQ(log_.record.preempted, (Ids{a}));
}

TEST_F(RequestListTest, ChoicesBeyondThePlacesWait) {
  const RequestId a = submit(0, 4);
  list_.take_in();
  EXPECT_EQ(intake_.queue().num_sequences(), 4);
  list_.admit(0, 0);
  list_.compact();
  list_.fork_choices(*list_.running()[0]);
  EXPECT_EQ(ids(list_.running()), (Ids{a, a + 1}));
  EXPECT_EQ(ids(list_.waiting()), (Ids{a + 2, a + 3}));
  EXPECT_EQ(intake_.queue().num_sequences(), 2);
}

TEST_F(RequestListTest, AnEndedSequenceExistsUntilTheStepsEnd) {
  const RequestId a = submit(0, 2);
  list_.take_in();
  EXPECT_FALSE(list_.waiting().empty());
  intake_.cancel(a);
  Sequence* const sequence = list_.waiting()[0].get();
  list_.take_in();
  EXPECT_TRUE(list_.has_news());
  EXPECT_TRUE(list_.waiting().empty());
  EXPECT_TRUE(sequence->finished);
  EXPECT_EQ(intake_.queue().num_sequences(), 0);
  list_.publish();
  std::vector<TokenEvent> events;
  channel_->poll(events);
  ASSERT_EQ(events.size(), 2u) << "one for each choice";
  for (const TokenEvent& event : events) {
    EXPECT_EQ(event.ending->finish.reason, FinishReason::cancelled);
  }
  list_.take_in();
  EXPECT_FALSE(list_.has_news());
}

}  // namespace
}  // namespace paceline::testing
