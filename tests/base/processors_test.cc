#include "base/processors.h"
#include "tests/test_directory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace paceline {
namespace {

namespace fs = std::filesystem;

class Processors : public testing::Test {
 protected:
  void describe(int processor, const std::string& siblings) {
    const fs::path folder =
        root_ / ("sys/devices/system/cpu/cpu" + std::to_string(processor)) / "topology";
    fs::create_directories(folder);
    std::ofstream(folder / "thread_siblings_list") << siblings << "\n";
  }

  TestDirectory temporary_;
  fs::path root_ = temporary_.path();
};

TEST_F(Processors, AllowedOnesAscend) {
  const std::vector<int> allowed = allowed_processors();
  ASSERT_FALSE(allowed.empty());
  EXPECT_TRUE(std::is_sorted(allowed.begin(), allowed.end()));
}

TEST_F(Processors, WithoutADescriptionEachIsACore) {
  EXPECT_EQ(processors_by_core(root_), allowed_processors());
}

TEST_F(Processors, SecondThreadsOfCoresComeLast) {
  const std::vector<int> allowed = allowed_processors();
  if (allowed.size() < 2) GTEST_SKIP() << "one processor has one order";
  // All on one core but the last, which has one of its own.
  for (const int processor : allowed) {
    describe(processor, processor == allowed.back() ? std::to_string(processor)
                                                    : std::to_string(allowed[0]) + "-1023");
  }
  std::vector<int> expected = {allowed[0], allowed.back()};
  expected.insert(expected.end(), allowed.begin() + 1, allowed.end() - 1);
  EXPECT_EQ(processors_by_core(root_), expected);
}

TEST_F(Processors, WhatIsNoNumberIsACoreOfItsOwn) {
  for (const int processor : allowed_processors()) describe(processor, "none");
  EXPECT_EQ(processors_by_core(root_), allowed_processors());
}

}  // namespace
}  // namespace paceline
