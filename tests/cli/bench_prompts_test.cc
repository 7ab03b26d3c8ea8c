#include "cli/bench_prompts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace paceline {
namespace {

TEST(BenchPrompts, AreFunctionsOfTheSeed) {
  std::set<std::string> texts;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    EXPECT_EQ(repeating_prompt(seed), repeating_prompt(seed));
    EXPECT_EQ(story_prompt(seed), story_prompt(seed));
    texts.insert(repeating_prompt(seed));
    texts.insert(story_prompt(seed));
  }
  EXPECT_EQ(texts.size(), 60);
}

// The end of the prompt has been there before, so prompt lookup finds what follows.
TEST(BenchPrompts, EndWithWordsThatWereThereBefore) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const std::string text = repeating_prompt(seed);
    const std::string end = text.substr(text.size() - 7);
    EXPECT_LT(text.find(end), text.size() - 7) << text;
    EXPECT_GT(std::count(text.begin(), text.end(), ' '), 60) << text;
  }
}

}  // namespace
}  // namespace paceline
