#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/json.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/option_value.h"
#include "cli/words.h"

namespace paceline {
namespace {

using testing::HasSubstr;

// A value of each kind that is within any limits of the table.
std::string sample_text(const OptionDef& option) {
  switch (option.kind) {
    case OptionKind::flag:
    case OptionKind::boolean:
      return "true";
    case OptionKind::choice:
      return std::string(split_words(option.choices).front());
    case OptionKind::logit_bias:
      return "1=1";
    case OptionKind::bytes:
      return "1M";
    case OptionKind::choices:
      return fmt::format("{0},{0}", split_words(option.choices).front());
    case OptionKind::integer:
    case OptionKind::integers:
      return std::to_string(static_cast<int64_t>(option.limits.min));
    default:
      return "1";
  }
}

TEST(OptionTable, EveryOptionCanBeSet) {
  for (const OptionDef& option : option_table()) {
    const std::vector<std::string> texts = {sample_text(option)};
    Settings settings;
    EXPECT_NO_THROW(apply_option(option, parse_option_value(option, texts, option.name), settings))
        << option.name;
  }
}

TEST(OptionTable, NoTwoOptionsOfACommandShareAFlag) {
  for (const CommandDef& command : command_table()) {
    std::map<std::string, std::string_view> owners;
    for (const OptionDef& option : option_table()) {
      if (!contains(option.commands, command.id)) continue;
      for (const std::string& flag : flags_of(option)) {
        EXPECT_TRUE(owners.emplace(flag, option.name).second)
            << command.name << " " << flag << ": " << option.name << " and " << owners[flag];
      }
    }
  }
}

TEST(OptionTable, EveryOptionIsDocumented) {
  for (const OptionDef& option : option_table()) {
    EXPECT_TRUE(option.help.ends_with('.')) << option.name;
    EXPECT_NE(option.commands, 0u) << option.name;
    EXPECT_EQ(takes_value(option), !option.placeholder.empty()) << option.name;
    const bool has_choices =
        option.kind == OptionKind::choice || option.kind == OptionKind::choices;
    EXPECT_EQ(has_choices, !option.choices.empty()) << option.name;
  }
}

TEST(OptionTable, NamesComeFromOneDefinition) {
  const OptionDef& option = *find_option("max_tokens");
  EXPECT_EQ(&option, find_option("max-tokens"));
  EXPECT_THAT(flags_of(option), testing::ElementsAre("-n", "--max-tokens", "--n-predict"));
  EXPECT_EQ(environment_name(option), "PACELINE_MAX_TOKENS");
  EXPECT_EQ(field_name(option), "max_tokens");
  EXPECT_EQ(find_option("max_tokns"), nullptr);
}

TEST(OptionTable, ACommandMayHaveItsOwnOptionOfAName) {
  EXPECT_EQ(find_option("threads", CommandId::bench)->kind, OptionKind::integers);
  EXPECT_EQ(find_option("threads", CommandId::serve)->kind, OptionKind::integer);
  EXPECT_FALSE(contains(find_option("threads", CommandId::serve)->commands, CommandId::bench));
}

TEST(Help, ShowsEveryOptionOfACommand) {
  for (const CommandDef& command : command_table()) {
    const std::string help = command_help(command);
    for (const OptionDef& option : option_table()) {
      const std::string flag = "--" + std::string(option.name);
      if (!contains(option.commands, command.id)) continue;
      EXPECT_THAT(help, HasSubstr(flag)) << command.name;
    }
  }
  EXPECT_THAT(command_help(find_command("tokenize")), testing::Not(HasSubstr("--temperature")));
}

TEST(Help, LinesFitATerminal) {
  for (const CommandDef& command : command_table()) {
    for (std::string_view line : split_words(command_help(command), "\n")) {
      EXPECT_LE(line.size(), 100u) << line;
    }
  }
}

TEST(Help, ProgramHelpListsEveryCommand) {
  for (const CommandDef& command : command_table()) {
    EXPECT_THAT(program_help(), HasSubstr("\n  " + std::string(command.name) + " "));
  }
}

TEST(OptionsDump, IsOneObjectAnOptionAndCommand) {
  const std::string dump = options_dump();
  std::set<std::string> commands;
  for (std::string_view line : split_words(dump, "\n")) {
    const Json row = parse_json(line, "dump");
    EXPECT_FALSE(row.find("flags")->as_array("flags").empty());
    EXPECT_FALSE(row.find("help")->as_string("help").empty());
    row.find("takes_value")->as_bool("takes_value");
    commands.insert(row.find("command")->as_string("command"));
  }
  EXPECT_EQ(commands.size(), command_table().size() + 1);
  EXPECT_THAT(dump,
              HasSubstr(R"({"command":"generate","flags":["-n","--max-tokens","--n-predict"],)"
                        R"("env":"PACELINE_MAX_TOKENS",)"));
}

}  // namespace
}  // namespace paceline
