// The snapshot of an engine: its sequences, and the holder of every block.
#include "engine/engine_snapshot.h"

#include <gtest/gtest.h>

#include "tests/engine/engine_fixture.h"

namespace paceline::testing {
namespace {

using Runs = std::vector<std::pair<int64_t, int64_t>>;

constexpr int64_t kFree = PoolSnapshot::kFree;
constexpr int64_t kCached = PoolSnapshot::kCached;
constexpr int64_t kShared = PoolSnapshot::kShared;

class EngineSnapshotTest : public EngineTest {
 protected:
  // Blocks of two tokens; they are acquired in the order of their ids.
  void make_engine(int64_t num_places, std::vector<CacheGroup> groups = {}) {
    engine({.num_blocks = 8,
            .limits = {.max_model_len = 64, .max_batched_tokens = 64, .max_num_seqs = num_places},
            .groups = std::move(groups)});
  }
  void step_times(int count) {
    for (int i = 0; i < count; ++i) step();
  }
  Runs runs(size_t group = 0) const { return snapshot_of(*engine_).pools.at(group).runs; }
};

TEST_F(EngineSnapshotTest, StatesAndOpenRowsAreCounted) {
  make_engine(2, {{.num_blocks = 8},
                  {.num_blocks = 5, .is_recurrent = true},
                  {.num_blocks = 3, .is_recurrent = true, .holds_open_rows = true}});
  submit(greedy({1, 2, 3}, 4));
  submit(greedy({4}, 2));
  step();
  const EngineSnapshot running = snapshot_of(*engine_);
  EXPECT_EQ(running.states.num_blocks, 5);
  EXPECT_EQ(running.states.num_used, 2);
  EXPECT_EQ(running.open_rows.num_blocks, 3);
  EXPECT_EQ(running.open_rows.num_used, 2);
  EXPECT_EQ(running.pools.size(), 2u) << "open rows are counted only";
  run_all();
  EXPECT_EQ(snapshot_of(*engine_).states.num_used, 0);
  EXPECT_EQ(snapshot_of(*engine_).open_rows.num_used, 0);
}

TEST_F(EngineSnapshotTest, RunningSequencesComeBeforeWaitingOnes) {
  make_engine(1);
  const auto first = engine_->submit(greedy({1, 2, 3}, 8), channel_, 7);
  step_times(2);  // two tokens are drawn, and the first of them is computed
  const auto second = engine_->submit(greedy({4, 5}, 6), channel_, 9);
  step();
  const EngineSnapshot snapshot = snapshot_of(*engine_);
  EXPECT_EQ(snapshot.counters.steps, 3);
  ASSERT_EQ(snapshot.sequences.size(), 2u);
  const SequenceSnapshot& running = snapshot.sequences[0];
  EXPECT_EQ(running.sequence, first);
  EXPECT_EQ(running.tag, 7);
  EXPECT_TRUE(running.is_running);
  EXPECT_FALSE(running.is_deferred);
  EXPECT_EQ(running.prompt_tokens, 3);
  EXPECT_EQ(running.output_tokens, 3);
  EXPECT_EQ(running.max_tokens, 8);
  EXPECT_EQ(running.blocks, 3) << "of five computed tokens";
  EXPECT_GE(running.queue_seconds, 0);
  EXPECT_GT(running.age_seconds, running.queue_seconds) << "it waited until its first step only";
  const SequenceSnapshot& waiting = snapshot.sequences[1];
  EXPECT_EQ(waiting.sequence, second);
  EXPECT_EQ(waiting.tag, 9);
  EXPECT_FALSE(waiting.is_running);
  EXPECT_EQ(waiting.prompt_tokens, 2);
  EXPECT_EQ(waiting.output_tokens, 0);
  EXPECT_EQ(waiting.max_tokens, 6);
  EXPECT_EQ(waiting.blocks, 0);
  EXPECT_GT(waiting.queue_seconds, 0);
  EXPECT_EQ(waiting.age_seconds, waiting.queue_seconds) << "it still waits";
}

TEST_F(EngineSnapshotTest, BlocksHaveTheirSequenceOrAreFreeOrCached) {
  make_engine(2);
  const RequestId first = submit(greedy({1, 2, 3}, 8));
  step();
  const RequestId second = submit(greedy({9}, 2));
  step();
  const PoolSnapshot pool = snapshot_of(*engine_).pools.at(0);
  EXPECT_EQ(pool.num_blocks, 8);
  EXPECT_EQ(pool.block_size, 2);
  EXPECT_EQ(pool.window, 0);
  EXPECT_EQ(pool.runs, (Runs{{first, 2}, {second, 1}, {kFree, 5}}));
  run_all();
  // Ten tokens of the first were computed and two of the second: five and one full blocks.
  EXPECT_EQ(runs(), (Runs{{kCached, 6}, {kFree, 2}}));
}

TEST_F(EngineSnapshotTest, ABlockOfTwoSequencesIsShared) {
  make_engine(2);
  GenerateRequest request = greedy({1, 2}, 4);
  request.n = 2;
  const RequestId id = submit(request);
  step_times(2);
  EXPECT_EQ(runs(), (Runs{{kShared, 1}, {id, 1}, {id + 1, 1}, {kFree, 5}}));
  const EngineSnapshot snapshot = snapshot_of(*engine_);
  ASSERT_EQ(snapshot.sequences.size(), 2u);
  EXPECT_EQ(snapshot.sequences[0].choice, 0);
  EXPECT_EQ(snapshot.sequences[1].choice, 1);
  EXPECT_EQ(snapshot.sequences[1].cached_tokens, 2);
  run_all();
}

TEST_F(EngineSnapshotTest, AHeldPrefixIsShared) {
  make_engine(2);
  GenerateRequest request = greedy({1, 2, 3, 4}, 0);
  request.prefix.hold = true;
  const RequestId id = submit(request);
  run_all();
  EXPECT_EQ(runs(), (Runs{{kShared, 2}, {kFree, 6}}));
  engine_->release(id);
  step();
  EXPECT_EQ(runs(), (Runs{{kCached, 2}, {kFree, 6}}));
}

TEST_F(EngineSnapshotTest, BlocksOutsideTheWindowAreNotHeld) {
  make_engine(1, {{.window = 3, .num_blocks = 8}, {.window = 0, .num_blocks = 10}});
  GenerateRequest request = greedy({1, 2, 3, 4, 5, 6, 7, 8, 9}, 8);
  request.prefix.write = PrefixUse::Write::none;
  const RequestId id = submit(request);
  step();
  const EngineSnapshot snapshot = snapshot_of(*engine_);
  ASSERT_EQ(snapshot.pools.size(), 2u);
  EXPECT_EQ(snapshot.pools[0].window, 3);
  // The next row, at position 9, sees the positions from 7 on: the blocks of 6 and 8.
  EXPECT_EQ(snapshot.pools[0].runs, (Runs{{kFree, 3}, {id, 2}, {kFree, 3}}));
  EXPECT_EQ(snapshot.sequences.at(0).blocks, 2);
  EXPECT_EQ(snapshot.pools[1].num_blocks, 10);
  EXPECT_EQ(snapshot.pools[1].runs, (Runs{{id, 5}, {kFree, 5}}));
}

TEST_F(EngineSnapshotTest, CountsWhatHappenedToRequests) {
  make_engine(1);
  const RequestId slow = submit(greedy({1, 2}, 12));
  step_times(2);
  engine_->defer(slow);
  submit(greedy({9}, 3));
  step_times(2);
  engine_->cancel(1000);
  step();
  const EngineSnapshot snapshot = snapshot_of(*engine_);
  EXPECT_EQ(snapshot.counters.preemptions, 1);
  EXPECT_EQ(snapshot.counters.deferred_preemptions, 1);
  EXPECT_EQ(snapshot.counters.late_cancellations, 1);
  EXPECT_EQ(snapshot.counters.dropped_holds, 0);
  ASSERT_EQ(snapshot.sequences.size(), 2u);
  EXPECT_EQ(snapshot.sequences[1].sequence, slow);
  EXPECT_TRUE(snapshot.sequences[1].is_deferred);
  EXPECT_EQ(snapshot.sequences[1].preemptions, 1);
}

}  // namespace
}  // namespace paceline::testing
