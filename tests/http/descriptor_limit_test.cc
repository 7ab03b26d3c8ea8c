#include "http/descriptor_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>

namespace paceline {
namespace {

TEST(DescriptorLimit, MoreConnectionsThanDescriptorsAreNamed) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = std::min<rlim_t>(before.rlim_max, 300);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto lack = lack_of_descriptors(16384);
  const auto none = lack_of_descriptors(100);
  const int mark = descriptor_mark();
  raise_descriptor_limit();
  rlimit raised{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &raised), 0);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(mark, 285);
  ASSERT_TRUE(lack);
  EXPECT_THAT(*lack, testing::AllOf(testing::HasSubstr("16384"), testing::HasSubstr("285")));
  EXPECT_FALSE(none);
  EXPECT_EQ(raised.rlim_cur, before.rlim_max);
}

}  // namespace
}  // namespace paceline
