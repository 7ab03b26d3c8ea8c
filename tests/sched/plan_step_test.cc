#include "sched/plan_step.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/sched/sched_world.h"

namespace paceline::testing {
namespace {

using Ids = std::vector<int64_t>;

SchedLimits blocks_of_one() { return {.block_size = 1, .max_sequences = 8, .max_rows = 64}; }

// Six blocks of one slot, two prompts of two tokens: the first step computes both (4 blocks), the
// second takes the last two, the third has none for either and evicts the younger.
TEST(PlanStep, PreemptsWhenBlocksRunOut) {
  SchedWorld world(blocks_of_one(), {{.num_blocks = 6}});
  world.submit({.arrival_id = 1, .prompt = 2, .output = 4});
  world.submit({.arrival_id = 2, .prompt = 2, .output = 4});
  world.step();
  EXPECT_EQ(world.running_ids(), (Ids{1, 2}));
  world.step();
  EXPECT_EQ(world.num_free(0), 0);
  world.step();
  EXPECT_EQ(world.preempted_now(), (Ids{2}));
  EXPECT_EQ(world.running_ids(), (Ids{1}));
  EXPECT_EQ(world.num_free(0), 2);
  world.step();
  EXPECT_EQ(world.finished(), (Ids{1}));
  world.step();
  EXPECT_EQ(world.running_ids(), (Ids{2})) << "2 resumes";
  while (world.step()) {
  }
  EXPECT_EQ(world.finished(), (Ids{1, 2}));
}

TEST(PlanStep, PreemptedSequenceResumesLater) {
  SchedWorld world(blocks_of_one(), {{.num_blocks = 6}});
  world.submit({.arrival_id = 1, .prompt = 2, .output = 4});
  world.submit({.arrival_id = 2, .prompt = 2, .output = 4});
  for (int i = 0; i < 3; ++i) world.step();
  world.submit({.arrival_id = 3, .prompt = 1, .output = 1});
  world.step();
  EXPECT_EQ(world.waiting_ids(), (Ids{2, 3})) << "it stands before the fresh one";
  world.step();
  // It resumes with its whole length, two prompt and two output tokens, in one slice.
  EXPECT_EQ(world.plan().slices[0].count, 4);
  while (world.step()) {
  }
  EXPECT_EQ(world.finished(), (Ids{1, 3, 2}));
}

TEST(PlanStep, AdmissionBlocksWhenPromptDoesNotFit) {
  SchedWorld world(blocks_of_one(), {{.num_blocks = 6}});
  world.submit({.arrival_id = 1, .prompt = 4, .output = 2});
  world.submit({.arrival_id = 2, .prompt = 3, .output = 1});
  world.submit({.arrival_id = 3, .prompt = 1, .output = 1});
  world.step();
  EXPECT_EQ(world.running_ids(), (Ids{1}));
  EXPECT_EQ(world.waiting_ids(), (Ids{2, 3})) << "3 would fit, and doesn't overtake";
  EXPECT_EQ(world.num_free(0), 2) << "nothing was taken for 2";
  world.step();
  EXPECT_EQ(world.finished(), (Ids{1}));
  world.step();
  EXPECT_EQ(world.finished(), (Ids{1, 2, 3}));
}

TEST(PlanStep, NoMoreSequencesThanTheBatchHasPlaces) {
  SchedLimits limits = blocks_of_one();
  limits.max_sequences = 2;
  SchedWorld world(limits, {{.num_blocks = 60}});
  for (int64_t id = 1; id <= 3; ++id) world.submit({.arrival_id = id, .prompt = 1, .output = id});
  world.step();
  EXPECT_EQ(world.running_ids(), (Ids{2}));
  world.step();
  EXPECT_EQ(world.running_ids(), (Ids{3})) << "a place that became free is taken at once";
}

TEST(PlanStep, AnAdapterBeyondTheLimitWaitsAndIsNotOvertaken) {
  SchedLimits limits = blocks_of_one();
  limits.max_adapters = 2;
  SchedWorld world(limits, {{.num_blocks = 60}});
  world.submit({.arrival_id = 1, .prompt = 1, .output = 3, .adapter = 1});
  world.submit({.arrival_id = 2, .prompt = 1, .output = 9, .adapter = 2});
  world.submit({.arrival_id = 3, .prompt = 1, .output = 9});
  world.submit({.arrival_id = 4, .prompt = 1, .output = 2, .adapter = 1});
  world.submit({.arrival_id = 5, .prompt = 1, .output = 2, .adapter = 3});
  world.submit({.arrival_id = 6, .prompt = 1, .output = 1, .adapter = 2});
  world.submit({.arrival_id = 7, .prompt = 1, .output = 1});
  world.step();
  EXPECT_TRUE(world.plan().lacks_adapters);
  EXPECT_EQ(world.running_ids(), (Ids{1, 2, 3, 4})) << "none of 1, 2 and the base needs more room";
  EXPECT_EQ(world.waiting_ids(), (Ids{5, 6, 7})) << "6 and 7 would have room, and don't overtake";
  world.step();
  EXPECT_EQ(world.finished(), (Ids{4}));
  world.step();
  EXPECT_EQ(world.finished(), (Ids{4, 1})) << "now nothing of adapter 1 is left";
  world.step();
  EXPECT_EQ(world.running_ids(), (Ids{2, 3, 5}));
  EXPECT_EQ(world.finished(), (Ids{4, 1, 6, 7}));
}

TEST(PlanStep, DecodesComeFirstAndPromptsShareWhatIsLeft) {
  SchedLimits limits{.block_size = 4,
                     .max_sequences = 8,
                     .max_rows = 32,
                     .max_rows_beside_decode = 10,
                     .min_prefill_beside_decode = 1};
  SchedWorld world(limits, {{.num_blocks = 64}});
  world.submit({.arrival_id = 1, .prompt = 3, .output = 9});
  world.step();
  world.submit({.arrival_id = 2, .prompt = 14, .output = 2});
  world.submit({.arrival_id = 3, .prompt = 20, .output = 2});
  world.step();
  EXPECT_EQ(world.plan().slices,
            (std::vector<PlannedSlice>{{.sequence = 0, .first = 3, .count = 1},
                                       {.sequence = 1, .first = 0, .count = 9}}));
  world.step();
  EXPECT_EQ(world.plan().slices,
            (std::vector<PlannedSlice>{{.sequence = 0, .first = 4, .count = 1},
                                       {.sequence = 1, .first = 9, .count = 5},
                                       {.sequence = 2, .first = 0, .count = 4}}));
}

TEST(PlanStep, NothingButPromptsGetsTheLargeBudget) {
  SchedLimits limits{.block_size = 4, .max_rows = 32, .max_rows_beside_decode = 4, .max_slice = 20};
  SchedWorld world(limits, {{.num_blocks = 64}});
  world.submit({.arrival_id = 1, .prompt = 50, .output = 1});
  world.submit({.arrival_id = 2, .prompt = 50, .output = 1});
  world.step();
  EXPECT_EQ(world.plan().slices,
            (std::vector<PlannedSlice>{{.sequence = 0, .first = 0, .count = 20},
                                       {.sequence = 1, .first = 0, .count = 12}}));
}

TEST(PlanStep, TheLowerClassIsServedFirstAndPreemptedLast) {
  SchedWorld world(blocks_of_one(), {{.num_blocks = 6}});
  world.submit({.arrival_id = 1, .priority = 1, .prompt = 2, .output = 5});
  world.submit({.arrival_id = 2, .priority = 0, .prompt = 2, .output = 5});
  world.step();
  world.step();
  world.step();
  EXPECT_EQ(world.preempted_now(), (Ids{1}));
}

TEST(PlanStep, TheLeastProgressedIsPreempted) {
  SchedWorld world(blocks_of_one(), {{.num_blocks = 8}});
  world.submit({.arrival_id = 5, .prompt = 1, .output = 20});
  world.step();
  world.step();
  world.submit({.arrival_id = 6, .prompt = 1, .output = 20});
  world.submit({.arrival_id = 7, .prompt = 1, .output = 20});
  Ids evicted;
  while (evicted.empty()) {
    world.step();
    evicted = world.preempted_now();
  }
  EXPECT_EQ(evicted, (Ids{7})) << "fewest output tokens, the tie to the higher id";
}

TEST(PlanStep, WaitingRaisesByAClass) {
  SchedLimits limits = blocks_of_one();
  limits.max_sequences = 1;
  limits.aging_steps = 10;
  SchedWorld world(limits, {{.num_blocks = 100}});
  world.submit({.arrival_id = 1, .priority = 1, .prompt = 1, .output = 1});
  // A stream of requests of the better class, one a step.
  int64_t id = 2;
  while (world.finished().empty() || world.finished().back() != 1) {
    world.submit({.arrival_id = id++, .priority = 0, .prompt = 1, .output = 1});
    world.step();
    ASSERT_LT(world.step_number(), 20);
  }
  EXPECT_GE(world.step_number(), 10);
}

TEST(PlanStep, AWindowedGroupCutsAPromptToTheBlocksItHas) {
  SchedLimits limits{.block_size = 2, .max_sequences = 4, .max_rows = 64, .max_slice = 64};
  SchedWorld world(limits, {{.window = 3, .num_blocks = 4}});
  world.submit({.arrival_id = 1, .prompt = 30, .output = 3});
  world.step();
  EXPECT_EQ(world.plan().slices[0].count, 8) << "all four blocks";
  while (world.step()) {
  }
  EXPECT_EQ(world.finished(), (Ids{1}));
}

TEST(PlanStep, VictimsFreeOnlyWhatNobodyElseHolds) {
  // Sequences 0 and 1 share block 0; 1 and 2 decode and need a block each, one is free.
  const std::vector<int32_t> counts = {2, 1, 1, 1};
  const std::vector<std::vector<int32_t>> tables = {{0, 1}, {0, 2}, {3}};
  std::vector<SchedBlocks> blocks;
  for (const auto& table : tables) {
    blocks.push_back({.table = table, .length = static_cast<int64_t>(table.size()) * 2});
  }
  const SchedGroup group{.num_free = 0, .reference_counts = counts};
  std::vector<SchedRunning> running;
  for (size_t i = 0; i < tables.size(); ++i) {
    running.push_back({.arrival_id = static_cast<int64_t>(i),
                       .num_tokens = blocks[i].length + 1,
                       .num_computed = blocks[i].length,
                       .num_output = 5 - static_cast<int64_t>(i),
                       .groups = std::span(blocks).subspan(i, 1)});
  }
  const SchedView view{.groups = {&group, 1}, .running = running};
  PlanScratch scratch;
  StepPlan plan;
  plan_step(view, {.block_size = 2}, scratch, plan);
  // 2 frees one block, not enough for the two others; 1 then frees block 2 and not block 0.
  EXPECT_EQ(plan.preempted, (std::vector<int32_t>{2, 1}));
  EXPECT_EQ(plan.slices, (std::vector<PlannedSlice>{{.sequence = 0, .first = 4, .count = 1}}));
}

TEST(PlanStep, APrefixThatIsBeingComputedIsWaitedFor) {
  const std::vector<int64_t> revived = {0};
  const SchedGroup group{.num_free = 100};
  std::vector<SchedWaiting> waiting(2);
  for (size_t i = 0; i < 2; ++i) {
    waiting[i] = {.arrival_id = static_cast<int64_t>(i),
                  .num_tokens = 20,
                  .prefix_revived = revived,
                  .prefix_is_coming = i == 1};
  }
  const SchedView view{.groups = {&group, 1}, .waiting = waiting};
  PlanScratch scratch;
  StepPlan plan;
  plan_step(view, {}, scratch, plan);
  EXPECT_EQ(plan.admitted, (std::vector<PlannedAdmission>{{.waiting = 0, .prefix_length = 0}}));
}

TEST(PlanStep, NobodyWaitsForAPrefixThatNobodyComputes) {
  const std::vector<int64_t> revived = {0};
  const SchedGroup group{.num_free = 10};
  const std::vector<SchedWaiting> waiting = {
      {.num_tokens = 20, .prefix_revived = revived, .prefix_is_coming = true}};
  const SchedView view{.groups = {&group, 1}, .waiting = waiting};
  PlanScratch scratch;
  StepPlan plan;
  plan_step(view, {}, scratch, plan);
  EXPECT_EQ(plan.admitted, (std::vector<PlannedAdmission>{{.waiting = 0, .prefix_length = 0}}));
}

TEST(PlanStep, ClassesBelowZeroKeepTheirOrder) {
  const std::vector<SchedWaiting> waiting = {
      {.arrival_id = 9, .priority = -2}, {.arrival_id = 5, .priority = -1}, {.arrival_id = 1}};
  std::vector<int32_t> order;
  order_waiting(waiting, 0, 10, order);
  EXPECT_EQ(order, (std::vector<int32_t>{0, 1, 2}));
  order_waiting(waiting, 10, 10, order);  // the second now has the class of the first, and is older
  EXPECT_EQ(order, (std::vector<int32_t>{1, 0, 2}));
  order_waiting(waiting, 1000, 10, order);  // and so has the third; no class is higher
  EXPECT_EQ(order, (std::vector<int32_t>{2, 1, 0}));
}

TEST(PlanStep, WorkWithoutBlocksIsSaidToStarve) {
  const std::vector<int64_t> revived = {0};
  const SchedGroup group{.num_free = 1};
  const std::vector<SchedWaiting> waiting = {{.num_tokens = 40, .prefix_revived = revived}};
  const SchedView view{.groups = {&group, 1}, .waiting = waiting};
  PlanScratch scratch;
  StepPlan plan;
  plan_step(view, {}, scratch, plan);
  EXPECT_TRUE(plan.starved);
  EXPECT_TRUE(plan.empty());
}

TEST(PlanStep, AClearedPlanHoldsNothing) {
  StepPlan plan{
      .preempted = {1}, .admitted = {{.waiting = 2}}, .slices = {{.count = 3}}, .starved = true};
  plan.clear();
  EXPECT_TRUE(plan.preempted.empty());
  EXPECT_TRUE(plan.admitted.empty());
  EXPECT_TRUE(plan.slices.empty());
  EXPECT_FALSE(plan.starved);
}

}  // namespace
}  // namespace paceline::testing
