#include "server/memory_watch.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace paceline {
namespace {

TEST(MemoryWatch, IsFullAt98PercentUntilItIsUnder95) {
  MemoryWatch watch(1000);
  watch.see(979);
  EXPECT_FALSE(watch.is_full());
  watch.see(980);
  EXPECT_TRUE(watch.is_full());
  watch.see(950);
  EXPECT_TRUE(watch.is_full());
  watch.see(949);
  EXPECT_FALSE(watch.is_full());
  EXPECT_EQ(watch.used(), 949);
}

TEST(MemoryWatch, SeesWhatThisProcessHasTouched) {
  constexpr int64_t kBlock = 64 << 20;
  MemoryWatch before(0), after(0);
  before.look();
  const std::vector<char> touched(kBlock, 'x');
  after.look();
  EXPECT_GE(after.used() - before.used(), kBlock * 9 / 10);
  EXPECT_GT(after.limit(), after.used());
  EXPECT_EQ(touched.back(), 'x');
}

}  // namespace
}  // namespace paceline
