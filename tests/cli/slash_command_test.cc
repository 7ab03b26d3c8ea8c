#include "cli/slash_command.h"

#include <gtest/gtest.h>

#include "tests/expect_error.h"

namespace paceline {
namespace {

using Kind = SlashCommand::Kind;

TEST(SlashCommand, TextIsForTheModelAndTwoSlashesAreOne) {
  EXPECT_EQ(read_slash_command("hello /save").kind, Kind::none);
  EXPECT_EQ(read_slash_command("hello /save").text, "hello /save");
  EXPECT_EQ(read_slash_command("//etc/hosts").kind, Kind::none);
  EXPECT_EQ(read_slash_command("//etc/hosts").text, "/etc/hosts");
}

TEST(SlashCommand, ACommandHasItsArgumentTrimmed) {
  const SlashCommand save = read_slash_command("/save  my chat.json ");
  EXPECT_EQ(save.kind, Kind::save);
  EXPECT_EQ(save.text, "my chat.json");
  EXPECT_EQ(read_slash_command("/system Be\nbrief.").text, "Be\nbrief.");
  EXPECT_EQ(read_slash_command("/quit").kind, Kind::exit);
}

TEST(SlashCommand, WhatDoesNotExistIsAnErrorWithASuggestion) {
  expect_error(ErrorCode::invalid, {"/rest", "/reset"}, [] { read_slash_command("/rest"); });
  expect_error(ErrorCode::invalid, {"/load", "file name"}, [] { read_slash_command("/load "); });
}

TEST(SlashCommand, AnArgumentThatACommandDoesNotTakeIsAnError) {
  for (const char* line : {"/exit now", "/reset all", "/stats 1", "/help /save", "/bye bye",
                           "/clear x", "/regenerate 2"}) {
    expect_error(ErrorCode::invalid, {"takes no argument", "//"},
                 [&] { read_slash_command(line); });
  }
  EXPECT_EQ(read_slash_command("/exit ").kind, Kind::exit);
  EXPECT_EQ(read_slash_command("/system").kind, Kind::system);
}

TEST(SlashCommand, TheHelpNamesEveryCommand) {
  for (const char* name :
       {"/system", "/reset", "/clear", "/regenerate", "/save", "/load", "/stats", "/exit"}) {
    EXPECT_NE(slash_help().find(name), std::string_view::npos) << name;
  }
}

}  // namespace
}  // namespace paceline
