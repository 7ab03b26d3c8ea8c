#include "state/state_cache.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace paceline {
namespace {

void check(const StateCache& cache, std::vector<const SequenceBlocks*> live) {
  cache.check_integrity(live);
}

std::vector<BlockId> table(const SequenceBlocks& sequence, int group) {
  const auto blocks = sequence.table(group);
  return {blocks.begin(), blocks.end()};
}

TEST(StateCache, GrowthUsesTheSlackFirstThenWholeBlocks) {
  const CacheGroup group{.num_blocks = 8};
  StateCache cache(4, {&group, 1});
  SequenceBlocks sequence(cache);
  EXPECT_EQ(sequence.table(0).size(), 0u);
  EXPECT_FALSE(cache.append(sequence, 1));
  EXPECT_EQ(sequence.table(0).size(), 1u);
  EXPECT_FALSE(cache.append(sequence, 3));  // fills the slack
  EXPECT_EQ(sequence.table(0).size(), 1u);
  EXPECT_FALSE(cache.append(sequence, 0));
  EXPECT_EQ(sequence.table(0).size(), 1u);
  EXPECT_FALSE(cache.append(sequence, 1));
  EXPECT_EQ(sequence.table(0).size(), 2u);
  EXPECT_FALSE(cache.append(sequence, 12));  // 3 of slack, then ceil(9 / 4)
  EXPECT_EQ(sequence.table(0).size(), 5u);
  EXPECT_EQ(sequence.length(), 17);
  EXPECT_EQ(cache.pool(0).num_free(), 3);
  check(cache, {&sequence});
}

TEST(StateCache, SlotsAreBlockTimesSizePlusOffset) {
  const CacheGroup group{.num_blocks = 8};
  StateCache cache(4, {&group, 1});
  SequenceBlocks first(cache), second(cache);
  EXPECT_FALSE(cache.append(first, 4));
  EXPECT_FALSE(cache.append(second, 4));
  EXPECT_FALSE(cache.append(first, 2));
  EXPECT_EQ(table(first, 0), (std::vector<BlockId>{0, 2}));
  EXPECT_EQ(first.slot(0, 3), 3);
  EXPECT_EQ(first.slot(0, 5), 9);
  EXPECT_EQ(second.slot(0, 0), 4);
}

TEST(StateCache, OutOfBlocksIsReportedAndLeavesStateIntact) {
  const std::vector<CacheGroup> groups = {{.num_blocks = 8}, {.window = 3, .num_blocks = 4}};
  StateCache cache(4, groups);
  SequenceBlocks other(cache), sequence(cache);
  EXPECT_FALSE(cache.append(other, 5));
  EXPECT_FALSE(cache.append(sequence, 6));
  const auto full = table(sequence, 0), windowed = table(sequence, 1);

  const auto out =
      cache.append(sequence, 3);  // 2 of slack, then a block: the second group has none
  ASSERT_TRUE(out);
  EXPECT_EQ(out->group, 1);
  EXPECT_EQ(out->needed, 1);
  EXPECT_EQ(out->free, 0);
  EXPECT_EQ(sequence.length(), 6);
  EXPECT_EQ(table(sequence, 0), full);
  EXPECT_EQ(table(sequence, 1), windowed);
  EXPECT_EQ(cache.pool(0).num_free(), 4);
  EXPECT_EQ(cache.pool(1).num_free(), 0);
  check(cache, {&other, &sequence});

  EXPECT_FALSE(cache.append(sequence, 2)) << "the slack is still there";
  const auto both = cache.append(sequence, 100);
  ASSERT_TRUE(both);
  EXPECT_EQ(both->group, 0) << "the first group that is short";
  EXPECT_EQ(both->needed, 25);
  EXPECT_EQ(both->free, 4);
  other = SequenceBlocks();
  EXPECT_FALSE(cache.append(sequence, 3)) << "what another sequence gave back can be used";
  check(cache, {&sequence});
}

TEST(StateCache, AHugeAppendIsOutOfBlocksAndNotAnOverflow) {
  const CacheGroup group{.num_blocks = 2};
  StateCache cache(16, {&group, 1});
  SequenceBlocks sequence(cache);
  EXPECT_FALSE(cache.append(sequence, 17));
  const int64_t huge = std::numeric_limits<int64_t>::max();
  const auto out = cache.append(sequence, huge);
  ASSERT_TRUE(out);
  EXPECT_EQ(out->needed, (huge - 17) / 16) << "lengths end at 2^63 - 1";
  EXPECT_EQ(sequence.length(), 17);
}

TEST(StateCache, BlocksOfAnEndedSequenceAreReusedLastInFirstOutInTheSameOrder) {
  const CacheGroup group{.num_blocks = 10};
  StateCache cache(2, {&group, 1});
  SequenceBlocks stays(cache), ends(cache);
  EXPECT_FALSE(cache.append(stays, 2));
  EXPECT_FALSE(cache.append(ends, 6));
  EXPECT_EQ(table(ends, 0), (std::vector<BlockId>{1, 2, 3}));
  ends = SequenceBlocks(cache);
  EXPECT_FALSE(cache.append(ends, 8));
  EXPECT_EQ(table(ends, 0), (std::vector<BlockId>{1, 2, 3, 4}));
  check(cache, {&stays, &ends});
}

TEST(StateCache, AWindowedGroupGivesBackWhatTheNextRowCantSee) {
  const std::vector<CacheGroup> groups = {{.num_blocks = 8}, {.window = 5, .num_blocks = 8}};
  StateCache cache(4, groups);
  SequenceBlocks sequence(cache);
  EXPECT_FALSE(cache.append(sequence, 12));
  cache.release_outside_window(sequence, 7);  // sees [3, 7]: block 0 still holds position 3
  EXPECT_EQ(table(sequence, 1), (std::vector<BlockId>{0, 1, 2}));
  cache.release_outside_window(sequence, 8);  // sees [4, 8]
  EXPECT_EQ(table(sequence, 1), (std::vector<BlockId>{kNoBlock, 1, 2}));
  EXPECT_EQ(sequence.slot(1, 4), 4);
  cache.release_outside_window(sequence, 6);  // passing is never undone
  cache.release_outside_window(sequence, 12);
  EXPECT_EQ(table(sequence, 1), (std::vector<BlockId>{kNoBlock, kNoBlock, 2}));
  EXPECT_EQ(table(sequence, 0), (std::vector<BlockId>{0, 1, 2}));
  EXPECT_EQ(cache.pool(1).num_free(), 7);
  check(cache, {&sequence});
  EXPECT_FALSE(cache.append(sequence, 1));
  EXPECT_EQ(sequence.table(1)[3], 1) << "the block given back last";
  check(cache, {&sequence});
}

TEST(StateCache, AWindowedGroupIsBoundedForEveryWindowChunkAndBlockSize) {
  for (int64_t block_size : {1, 2, 5, 16}) {
    for (int64_t window : {1, 2, 7, 16, 33}) {
      for (int64_t chunk : {1, 2, 9, 16, 40}) {
        const int64_t bound = StateCache::blocks_for_window(window, chunk, block_size);
        EXPECT_LE(bound, (window + chunk + block_size - 1) / block_size + 1);
        const CacheGroup group{.window = window, .num_blocks = bound};
        StateCache cache(block_size, {&group, 1});
        EXPECT_EQ(cache.capacity_tokens(chunk), std::numeric_limits<int64_t>::max());
        SequenceBlocks sequence(cache);
        int64_t most_held = 0;
        for (int64_t first_step = 1; first_step <= chunk; ++first_step) {
          sequence = SequenceBlocks(cache);
          for (int64_t step = first_step; sequence.length() < 5 * (window + chunk + block_size);
               step = chunk) {
            cache.release_outside_window(sequence, sequence.length());
            ASSERT_FALSE(cache.append(sequence, step))
                << block_size << " " << window << " " << chunk;
            most_held = std::max(most_held, bound - cache.pool(0).num_free());
          }
        }
        check(cache, {&sequence});
        if (chunk >= block_size) {  // every alignment of a step occurred: the bound is reached
          EXPECT_EQ(most_held, bound) << block_size << " " << window << " " << chunk;
        }
      }
    }
  }
}

TEST(StateCache, CapacityIsWhatTheWorstStepsReach) {
  const std::vector<CacheGroup> groups = {{.num_blocks = 10}, {.window = 4, .num_blocks = 3}};
  StateCache cache(4, groups);
  EXPECT_EQ(cache.capacity_tokens(2), 40) << "the window lets go in time";
  EXPECT_EQ(cache.capacity_tokens(7), 12) << "3 + 7 positions can touch 4 blocks";

  // A window of 4 and steps of up to 7 in 3 blocks of 4: never stuck below 12 tokens.
  const CacheGroup windowed = groups[1];
  for (int64_t first = 1; first <= 7; ++first) {
    for (int64_t second = 1; second <= 7 && first + second <= 12; ++second) {
      StateCache small(4, {&windowed, 1});
      SequenceBlocks sequence(small);
      for (int64_t step : {first, second, 12 - first - second}) {
        if (step > 7) continue;
        small.release_outside_window(sequence, sequence.length());
        EXPECT_FALSE(small.append(sequence, step));
      }
    }
  }
  StateCache stuck(4, {&windowed, 1});
  SequenceBlocks sequence(stuck);
  for (int64_t step : {6, 7}) {  // the step to 13 tokens needs positions 3 to 12
    stuck.release_outside_window(sequence, sequence.length());
    EXPECT_EQ(stuck.append(sequence, step).has_value(), step == 7);
  }
}

TEST(StateCache, TruncateGivesBackWholeBlocksOnly) {
  const std::vector<CacheGroup> groups = {{.num_blocks = 8}, {.window = 5, .num_blocks = 8}};
  StateCache cache(4, groups);
  SequenceBlocks sequence(cache);
  EXPECT_FALSE(cache.append(sequence, 14));
  cache.truncate(sequence, 14);
  cache.truncate(sequence, 13);
  EXPECT_EQ(cache.pool(0).num_free(), 4);
  cache.truncate(sequence, 8);
  EXPECT_EQ(cache.pool(0).num_free(), 6);
  EXPECT_EQ(cache.pool(1).num_free(), 6);
  EXPECT_FALSE(cache.append(sequence, 4));
  cache.release_outside_window(sequence, 12);
  cache.truncate(sequence, 12);
  EXPECT_EQ(table(sequence, 1), (std::vector<BlockId>{kNoBlock, kNoBlock, 2}));
  check(cache, {&sequence});
}

TEST(StateCache, AMovedSequenceIsHeldOnce) {
  const CacheGroup group{.num_blocks = 4};
  StateCache cache(4, {&group, 1});
  SequenceBlocks first(cache);
  EXPECT_FALSE(cache.append(first, 5));
  SequenceBlocks second(std::move(first));
  EXPECT_EQ(second.length(), 5);
  check(cache, {&second});
  SequenceBlocks third(cache);
  EXPECT_FALSE(cache.append(third, 1));
  third = std::move(second);
  EXPECT_EQ(cache.pool(0).num_free(), 2);
  check(cache, {&third});
  SequenceBlocks& itself = third;
  third = std::move(itself);
  EXPECT_EQ(third.length(), 5);
  check(cache, {&third});
  { SequenceBlocks ends(std::move(third)); }
  EXPECT_EQ(cache.pool(0).num_free(), 4);
  check(cache, {});
}

TEST(StateCache, WhatASequenceWasMovedFromIsAsNew) {
  const CacheGroup group{.num_blocks = 4};
  StateCache cache(2, {&group, 1});
  const std::vector<int32_t> tokens = {1, 2, 3};
  const Hash128 hash = cache.prefixes().extend({}, std::span(tokens).first(2));
  SequenceBlocks first(cache);
  EXPECT_FALSE(cache.append(first, 3));
  cache.publish(first, {&hash, 1}, tokens, 3, true);
  ASSERT_EQ(first.num_published(), 1);
  SequenceBlocks second(std::move(first));
  EXPECT_EQ(second.num_published(), 1);
  EXPECT_EQ(first.num_published(), 0);
  EXPECT_EQ(first.length(), 0);
  SequenceBlocks third;
  third = std::move(second);
  EXPECT_EQ(third.num_published(), 1);
  EXPECT_EQ(second.num_published(), 0);
  EXPECT_EQ(second.length(), 0);
  check(cache, {&third});
}

TEST(StateCacheDeathTest, MisuseAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const CacheGroup group{.window = 2, .num_blocks = 8};
  StateCache cache(2, {&group, 1}), other(2, {&group, 1});
  SequenceBlocks sequence(cache), unbound;
  EXPECT_FALSE(cache.append(sequence, 8));
  cache.release_outside_window(sequence, 6);
  EXPECT_DEATH(sequence.slot(0, 8), "no slot is reserved");
  EXPECT_DEATH(sequence.slot(0, 3), "the window has passed");
  EXPECT_DEATH(cache.truncate(sequence, 4), "the window has passed blocks");
  EXPECT_DEATH(cache.truncate(sequence, 9), "truncate never lengthens");
  EXPECT_DEATH(cache.release_outside_window(sequence, 9), "the next row");
  EXPECT_DEATH((void)other.append(sequence, 1), "another cache");
  EXPECT_DEATH((void)cache.append(unbound, 1), "another cache");
  StateCache single(1, {&group, 1});  // row 1 sees position 0, which has gone
  SequenceBlocks passed(single);
  EXPECT_FALSE(single.append(passed, 3));
  single.release_outside_window(passed, 2);
  EXPECT_DEATH(single.truncate(passed, 1), "the window has passed blocks");
  const SequenceBlocks* twice[] = {&sequence, &sequence};
  EXPECT_DEATH(cache.check_integrity(twice), "differs from the number of tables");
  EXPECT_DEATH(cache.check_integrity({}), "differs from the number of tables");
}

}  // namespace
}  // namespace paceline
