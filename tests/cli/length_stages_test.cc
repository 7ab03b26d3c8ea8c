#include "cli/length_stages.h"

#include <gtest/gtest.h>

#include "cli/usage_error.h"

namespace paceline {
namespace {

TEST(LengthStages, AreReadAsLengthsAndParts) {
  const auto stages = parse_length_stages("256:0.45,512:.85,1024:1", "--sequence-lengths");
  ASSERT_EQ(stages.size(), 3u);
  EXPECT_EQ(stages[1].length, 512);
  EXPECT_DOUBLE_EQ(stages[1].until, 0.85);
  EXPECT_DOUBLE_EQ(stages[2].until, 1.0);
}

TEST(LengthStages, NameWhatIsWrong) {
  for (const char* const text :
       {"", "256", "256:", ":0.5", "256:0.5,", "256:0.5,128:0.7", "256:0.5,512:0.5", "0:0.5",
        "256:1.5", "256:nan", "256:-1", "256:0.5x", "2a:0.5", "99999999999999999999:0.5"}) {
    try {
      parse_length_stages(text, "--sequence-lengths");
      ADD_FAILURE() << text;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("--sequence-lengths: found"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace paceline
