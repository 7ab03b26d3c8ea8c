#include "server/memory_watch.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
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

TEST(MemoryWatch, ATrimIsDueAfterLargeMemoryIsReleased) {
  MemoryWatch watch(1000);
  const auto held = std::make_shared<int>(5);
  std::shared_ptr<void> wrapped = watch.trim_after(held);
  watch.see(100);
  EXPECT_FALSE(watch.is_trim_due());
  wrapped = nullptr;
  EXPECT_EQ(held.use_count(), 1);
  watch.see(100);
  EXPECT_TRUE(watch.is_trim_due());
  watch.see(100);
  EXPECT_TRUE(watch.is_trim_due()) << "it has not begun";
  watch.trim_has_begun();
  watch.see(100);
  EXPECT_FALSE(watch.is_trim_due());
}

TEST(MemoryWatch, ATrimIsDueWhereMemoryIsScarceButNotAtOnceAgain) {
  MemoryWatch watch(1000);
  watch.see(949);
  EXPECT_FALSE(watch.is_trim_due());
  watch.see(950);
  EXPECT_TRUE(watch.is_trim_due());
  watch.trim_has_begun();
  watch.see(950);
  EXPECT_FALSE(watch.is_trim_due());
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
