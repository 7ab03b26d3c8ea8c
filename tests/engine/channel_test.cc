#include "engine/channel.h"

#include <gtest/gtest.h>

#include "engine/sequence.h"
#include "tests/engine/engine_fixture.h"

namespace paceline::testing {
namespace {

using ChannelTest = EngineTest;

TEST_F(ChannelTest, AListenerIsCalledOnceAStepWhoeverGotTokens) {
  int num_calls = 0;
  engine();
  channel_ = std::make_shared<Channel>([&num_calls] { ++num_calls; });
  for (const TokenId first : {1, 5, 9}) submit(greedy({first}, 4));
  int num_steps = 0;
  while (step()) {
    ++num_steps;
    EXPECT_EQ(num_calls, num_steps);
  }
  EXPECT_GE(num_steps, 3);
}

TEST_F(ChannelTest, AnInspectionSeesTheEngineBetweenSteps) {
  engine();
  submit(greedy({1, 2, 3}, 8));
  step();
  int64_t num_running = -1, num_tokens = -1;
  engine_->inspect([&](const Engine& inspected) {
    const auto& seen = static_cast<const StepEngine&>(inspected);
    num_running = static_cast<int64_t>(seen.running().size());
    num_tokens = seen.running()[0]->num_tokens();
  });
  EXPECT_EQ(num_running, -1) << "not on the caller's thread";
  EXPECT_EQ(engine_->wait_for_mail(std::chrono::milliseconds(0)), 0u);
  step();
  EXPECT_EQ(num_running, 1);
  EXPECT_EQ(num_tokens, 4) << "as the step before left it";
}

TEST_F(ChannelTest, AnEngineThatEndsInspectsNothing) {
  engine();
  bool was_called = false;
  engine_->inspect([&](const Engine&) { was_called = true; });
  engine_->end_all();
  EXPECT_FALSE(was_called);
}

}  // namespace
}  // namespace paceline::testing
