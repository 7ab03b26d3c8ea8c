// Patterns of module names as Python's re.match and re.fullmatch read them, and their bounds.
#include "adapters/module_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/expect_error.h"

namespace paceline {
namespace {

using Extent = ModulePattern::Extent;

bool pattern_matches(std::string_view pattern, Extent extent, std::string_view module) {
  MatchBudget budget(std::chrono::seconds(5));
  return ModulePattern(pattern, extent, "config").matches(module, budget);
}

TEST(ModulePattern, BeginAndWholeAreThoseOfPython) {
  EXPECT_TRUE(pattern_matches("model\\.layers", Extent::begin, "model.layers.3"));
  EXPECT_FALSE(pattern_matches("layers", Extent::begin, "model.layers.3"));
  EXPECT_FALSE(pattern_matches("model\\.layers", Extent::whole, "model.layers.3"));
  EXPECT_TRUE(pattern_matches(".*\\.(q|v)_proj", Extent::whole, "model.layers.3.self_attn.v_proj"));
  EXPECT_FALSE(
      pattern_matches(".*\\.(q|v)_proj", Extent::whole, "model.layers.3.self_attn.k_proj"));
  // re.fullmatch tries the second branch, too.
  EXPECT_TRUE(pattern_matches("q|q_proj", Extent::whole, "q_proj"));
}

TEST(ModulePattern, FindsAGroup) {
  MatchBudget budget(std::chrono::seconds(5));
  const ModulePattern pattern(".*?\\.[^.]*\\.(?P<idx>\\d+)\\.", Extent::begin, "config");
  EXPECT_EQ(pattern.find_group("model.layers.12.mlp.up_proj", "idx", budget), "12");
  EXPECT_EQ(pattern.find_group("lm_head", "idx", budget), std::nullopt);
}

TEST(ModulePattern, MalformedAndLongPatternsAreRefused) {
  expect_error(ErrorCode::invalid, {"config: ", "not a regular expression at byte"},
               [] { ModulePattern("(q_proj", Extent::begin, "config"); });
  expect_error(ErrorCode::invalid, {"config: ", "20000 bytes", "16384"},
               [] { ModulePattern(std::string(20'000, 'a'), Extent::begin, "config"); });
}

TEST(ModulePattern, ExponentialPatternsEnd) {
  const std::string module(200, 'a');
  expect_error(ErrorCode::exhausted, {"config: ", "simpler"},
               [&] { pattern_matches("(a|aa)+\\d", Extent::begin, module); });
}

TEST(ModulePattern, ManySlowMatchesEnd) {
  const std::string module(10, 'a');
  const ModulePattern slow("(a*)*(a*)*c?\\d", Extent::begin, "config");
  MatchBudget budget(std::chrono::milliseconds(1));
  expect_error(ErrorCode::exhausted, {"config: "}, [&] {
    for (int i = 0; i < 1'000'000; ++i) slow.matches(module, budget);
  });
}

}  // namespace
}  // namespace paceline
