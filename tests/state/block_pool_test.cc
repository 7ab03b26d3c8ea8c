#include "state/block_pool.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(BlockPool, HandsOutEveryBlockOnceAndThenNone) {
  BlockPool pool(3);
  EXPECT_EQ(pool.num_blocks(), 3);
  EXPECT_EQ(pool.acquire()->block, 0);
  EXPECT_EQ(pool.acquire()->block, 1);
  EXPECT_EQ(pool.acquire()->block, 2);
  EXPECT_EQ(pool.num_free(), 0);
  EXPECT_FALSE(pool.acquire().has_value());
  pool.check_integrity();
}

TEST(BlockPool, TheLastFreedIsTheFirstReused) {
  BlockPool pool(4);
  for (int i = 0; i < 4; ++i) pool.acquire();
  pool.release(2);
  pool.release(0);
  pool.release(3);
  EXPECT_EQ(pool.acquire()->block, 3);
  EXPECT_EQ(pool.acquire()->block, 0);
  pool.release(1);
  EXPECT_EQ(pool.acquire()->block, 1);
  EXPECT_EQ(pool.acquire()->block, 2);
  EXPECT_FALSE(pool.acquire().has_value());
}

TEST(BlockPool, ASharedBlockIsFreeOnlyAfterItsLastHolder) {
  BlockPool pool(1);
  const BlockId block = pool.acquire()->block;
  pool.share(block);
  pool.share(block);
  EXPECT_EQ(pool.reference_count(block), 3);
  pool.release(block);
  pool.release(block);
  EXPECT_EQ(pool.num_free(), 0);
  pool.check_integrity();
  pool.release(block);
  EXPECT_EQ(pool.num_free(), 1);
  EXPECT_EQ(pool.reference_count(block), 0);
  pool.check_integrity();
}

TEST(BlockPool, AnEmptyPoolIsAlwaysOut) {
  BlockPool pool(0);
  EXPECT_FALSE(pool.acquire().has_value());
  pool.check_integrity();
}

TEST(BlockPoolDeathTest, MisuseAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  BlockPool pool(2);
  const BlockId block = pool.acquire()->block;
  pool.release(block);
  EXPECT_DEATH(pool.release(block), "block freed twice");
  EXPECT_DEATH(pool.share(block), "a free block can't be shared");
  EXPECT_DEATH(pool.reference_count(2), "no such block");
}

}  // namespace
}  // namespace paceline
