#include "cli/option_hint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command.h"
#include "cli/resolve.h"
#include "cli/usage_error.h"

namespace paceline {
namespace {

using testing::HasSubstr;

TEST(OptionHint, SaysWhereAnOptionIs) {
  EXPECT_EQ(option_hint("--max-tokens", CommandId::serve), "; a request sets it: max_tokens");
  EXPECT_EQ(option_hint("--max_tokens", CommandId::embed), "; generate and chat have it");
  EXPECT_EQ(option_hint("--port", CommandId::chat), "; serve has it");
  EXPECT_THAT(option_hint("--mlock", CommandId::tokenize), HasSubstr("more commands have it"));
}

TEST(OptionHint, KnowsTheNamesOfOtherPrograms) {
  EXPECT_EQ(option_hint("--max-new-tokens", CommandId::generate), "; it is --max-tokens here");
  EXPECT_EQ(option_hint("--max_new_tokens", CommandId::serve),
            "; it is --max-tokens here; a request sets it: max_tokens");
  EXPECT_EQ(option_hint("-fa", CommandId::serve), "; it is always on here");
  EXPECT_THAT(option_hint("--num-ctx", CommandId::chat), HasSubstr("--max-model-len"));
}

TEST(OptionHint, FindsAMisspelling) {
  EXPECT_EQ(option_hint("--max-tokns", CommandId::generate), "; did you mean --max-tokens?");
  EXPECT_EQ(option_hint("--temprature", CommandId::chat), "; did you mean --temperature?");
  EXPECT_EQ(option_hint("--tokens-max", CommandId::chat), "; did you mean --max-tokens?");
}

TEST(OptionHint, SaysNothingWhereNoOptionIsNear) {
  EXPECT_EQ(option_hint("--frobnicate", CommandId::generate), "");
  EXPECT_EQ(option_hint("--no-warmup", CommandId::serve), "");
}

// "-fa" is not "-f a".
TEST(OptionHint, NoForeignNameWithOneDashHidesAnOption) {
  for (const OptionDef& option : option_table()) {
    for (const std::string& flag : flags_of(option)) {
      EXPECT_FALSE(flag[1] != '-' && is_foreign_option(flag)) << flag;
    }
  }
}

TEST(OptionHint, EveryForeignNameLeadsToAnOptionOrSaysWhyNot) {
  for (const CommandDef& command : command_table()) {
    for (std::string_view flag : foreign_options()) {
      EXPECT_THAT(option_hint(flag, command.id), testing::StartsWith("; ")) << flag;
    }
  }
}

TEST(ForeignCommand, GetsTheWayThatExistsHere) {
  const auto message = [](std::string_view name, std::string_view argument) -> std::string {
    try {
      find_command(name, argument);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "found";
  };
  EXPECT_THAT(message("pull", "Qwen/Qwen3-0.6B"), HasSubstr("hf download Qwen/Qwen3-0.6B"));
  EXPECT_THAT(message("pull", "hf.co/a/b:Q4_K_M"),
              HasSubstr("hf download a/b --include \"*Q4_K_M*\""));
  EXPECT_THAT(message("pull", "llama3.2"), HasSubstr("hf download OWNER/NAME"));
  EXPECT_THAT(message("ps", ""), HasSubstr("/slots"));
  EXPECT_EQ(message("show", ""), "found");
  EXPECT_EQ(message("list", ""), "found");
}

}  // namespace
}  // namespace paceline
