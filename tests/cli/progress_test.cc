#include "cli/progress.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(ProgressLine, ShowsShareRateAndTimeLeft) {
  EXPECT_EQ(progress_line("tok", 0, 100, 0), "[------------------------]   0%");
  EXPECT_EQ(progress_line("tok", 5000, 10000, 2),
            "[############------------]  50%  2,500 tok/s  0:02 left");
  EXPECT_EQ(progress_line("tok", 100, 1000000, 1),
            "[------------------------]   0%  100 tok/s  2:46:39 left");
  EXPECT_EQ(progress_line("tok", 10, 10, 4),
            "[########################] 100%  2.5 tok/s  0:00 left");
  EXPECT_EQ(progress_line("items", 40, 0, 2), "40 items  20.0 items/s");
}

TEST(GroupedNumber, GroupsThousands) {
  EXPECT_EQ(grouped_number(0), "0.0");
  EXPECT_EQ(grouped_number(12.34), "12.3");
  EXPECT_EQ(grouped_number(999.6), "1,000");
  EXPECT_EQ(grouped_number(123), "123");
  EXPECT_EQ(grouped_number(1234567), "1,234,567");
  EXPECT_EQ(grouped_number(-1234), "-1,234");
}

}  // namespace
}  // namespace paceline
