#include "cli/slash_command.h"

#include <gtest/gtest.h>

#include "tests/expect_error.h"

namespace paceline {
namespace {

using Kind = SlashCommand::Kind;

TEST(SlashCommand, text_is_for_the_model_and_two_slashes_are_one) {
  EXPECT_EQ(read_slash_command("hello /save").kind, Kind::none);
  EXPECT_EQ(read_slash_command("hello /save").text, "hello /save");
  EXPECT_EQ(read_slash_command("//etc/hosts").kind, Kind::none);
  EXPECT_EQ(read_slash_command("//etc/hosts").text, "/etc/hosts");
}

TEST(SlashCommand, a_command_has_its_argument_trimmed) {
  const SlashCommand save = read_slash_command("/save  my chat.json ");
  EXPECT_EQ(save.kind, Kind::save);
  EXPECT_EQ(save.text, "my chat.json");
  EXPECT_EQ(read_slash_command("/system Be\nbrief.").text, "Be\nbrief.");
  EXPECT_EQ(read_slash_command("/quit").kind, Kind::exit);
}

TEST(SlashCommand, what_does_not_exist_is_an_error_with_a_suggestion) {
  expect_error(ErrorCode::invalid, {"/rest", "/reset"}, [] { read_slash_command("/rest"); });
  expect_error(ErrorCode::invalid, {"/load", "file name"}, [] { read_slash_command("/load "); });
}

TEST(SlashCommand, an_argument_that_a_command_does_not_take_is_an_error) {
  for (const char* line : {"/exit now", "/reset all", "/stats 1", "/help /save", "/bye bye"}) {
    expect_error(ErrorCode::invalid, {"takes no argument", "//"},
                 [&] { read_slash_command(line); });
  }
  EXPECT_EQ(read_slash_command("/exit ").kind, Kind::exit);
  EXPECT_EQ(read_slash_command("/system").kind, Kind::system);
}

TEST(SlashCommand, the_help_names_every_command) {
  for (const char* name : {"/system", "/reset", "/save", "/load", "/stats", "/exit"}) {
    EXPECT_NE(slash_help().find(name), std::string_view::npos) << name;
  }
}

}  // namespace
}  // namespace paceline
