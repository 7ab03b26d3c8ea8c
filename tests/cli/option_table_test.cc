#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/json.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/option_value.h"
#include "cli/words.h"
#include "finetune/option_faults.h"

namespace paceline {
namespace {

using testing::HasSubstr;

// A value of each kind that is within any limits of the table.
std::string sample_text(const OptionDef& option) {
  if (option.placeholder.ends_with("DIR:SCALE")) return "a=b:0.5";
  if (option.placeholder.starts_with("NAME=DIR")) return "a=b";
  if (option.placeholder == "N:X,...") return "64:0.5";
  if (option.placeholder == "METHOD") return "ngram";
  switch (option.kind) {
    case OptionKind::flag:
    case OptionKind::boolean:
      return "true";
    case OptionKind::choice:
      return std::string(split_words(option.choices).front());
    case OptionKind::logit_bias:
    case OptionKind::named_numbers:
      return "1=1";
    case OptionKind::bytes:
      return "1M";
    case OptionKind::choices:
      return fmt::format("{0},{0}", split_words(option.choices).front());
    case OptionKind::integer:
    case OptionKind::integers:
      return std::to_string(static_cast<int64_t>(option.limits.min));
    case OptionKind::number:
      return option.limits.max < 1 ? "0.5" : "1";
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

// -o means --output in every command; every long name has one meaning as well.
TEST(OptionTable, AFlagIsTheSameOptionInEveryCommand) {
  std::map<std::string, std::string_view> owners;
  for (const OptionDef& option : option_table()) {
    for (const std::string& flag : flags_of(option)) {
      const auto [owner, is_new] = owners.emplace(flag, option.name);
      EXPECT_EQ(owner->second, option.name) << flag;
    }
  }
}

// Commands may define an option of the same name with their own help; then no command has two.
TEST(OptionTable, OptionsOfOneNameAreOfOneKindAndOfDifferentCommands) {
  std::map<std::string_view, const OptionDef*> seen;
  for (const OptionDef& option : option_table()) {
    const auto [first, is_new] = seen.emplace(option.name, &option);
    if (is_new) continue;
    EXPECT_EQ(first->second->commands & option.commands, 0u) << option.name;
    if (option.name == "model") continue;           // serve takes several
    const bool is_list = option.name == "threads";  // bench measures with several numbers
    EXPECT_EQ(first->second->kind == option.kind, !is_list) << option.name;
  }
}

// "for serve ..." would confuse in the help of other commands.
TEST(OptionTable, NoHelpSpeaksOfAnotherCommand) {
  for (const OptionDef& option : option_table()) {
    if (option.name == "max-tokens") continue;  // a default of chat's own
    const std::string text = fmt::format("{} [{}]", option.help, option.default_text);
    for (const CommandDef& command : command_table()) {
      for (const std::string_view form : {"{}:", "of {}", "for {}", "with {}", "that {} "}) {
        EXPECT_THAT(text, testing::Not(HasSubstr(fmt::format(fmt::runtime(form), command.name))))
            << option.name;
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
  EXPECT_THAT(field_names(option), testing::ElementsAre("max_tokens", "n_predict"));
  EXPECT_EQ(environment_name("max_tokens"), "PACELINE_MAX_TOKENS");
  EXPECT_EQ(&option, find_option("n-predict"));
  EXPECT_EQ(find_option("max_tokns"), nullptr);
}

TEST(OptionTable, ACommandMayHaveItsOwnOptionOfAName) {
  EXPECT_EQ(find_option("threads", CommandId::bench)->kind, OptionKind::integers);
  EXPECT_EQ(find_option("threads", CommandId::serve)->kind, OptionKind::integer);
  EXPECT_FALSE(contains(find_option("threads", CommandId::serve)->commands, CommandId::bench));
}

std::vector<std::string_view> lines_of(std::string_view text) { return split_words(text, "\n"); }

TEST(Help, AllOfItShowsEveryOptionOfACommand) {
  for (const CommandDef& command : command_table()) {
    const std::string help = whole_command_help(command);
    for (const OptionDef& option : option_table()) {
      if (!contains(option.commands, command.id)) continue;
      for (const std::string& flag : flags_of(option)) {
        EXPECT_THAT(help, HasSubstr(flag)) << command.name;
      }
    }
  }
  EXPECT_THAT(whole_command_help(find_command("tokenize")),
              testing::Not(HasSubstr("--temperature")));
}

TEST(Help, TheBasicHelpIsAScreen) {
  for (const CommandDef& command : command_table()) {
    const std::string help = command_help(command);
    EXPECT_LE(std::count(help.begin(), help.end(), '\n'), 45) << command.name << "\n" << help;
    EXPECT_THAT(help, HasSubstr("--help-all")) << command.name;
  }
}

TEST(Help, TheBasicOptionsAreOptionsOfTheCommand) {
  for (const CommandDef& command : command_table()) {
    for (const std::string_view name : split_words(command.basics)) {
      const OptionDef* option = find_option(name, command.id);
      ASSERT_NE(option, nullptr) << command.name << " " << name;
      EXPECT_EQ(option->name, name) << command.name;
      EXPECT_TRUE(contains(option->commands, command.id)) << command.name << " " << name;
      EXPECT_THAT(command_help(command), HasSubstr("--" + std::string(name)));
    }
  }
}

TEST(Help, LinesFitATerminal) {
  for (const CommandDef& command : command_table()) {
    for (const std::string& help : {command_help(command), whole_command_help(command)}) {
      for (std::string_view line : lines_of(help)) EXPECT_LE(line.size(), 100u) << line;
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
    const std::string& value = row.find("value")->as_string("value");
    EXPECT_EQ(value == "none", row.find("placeholder")->as_string("placeholder").empty());
    EXPECT_EQ(value.starts_with("choice"), !row.find("choices")->as_array("choices").empty());
    commands.insert(row.find("command")->as_string("command"));
  }
  EXPECT_EQ(commands.size(), command_table().size() + 1);
  EXPECT_THAT(dump,
              HasSubstr(R"({"command":"generate","flags":["-n","--max-tokens","--n-predict"],)"
                        R"("env":"PACELINE_MAX_TOKENS",)"));
  EXPECT_THAT(dump, HasSubstr(R"("placeholder":"FORMAT","value":"choice","choices":["none",)"));
  EXPECT_THAT(dump, HasSubstr(R"("placeholder":"DIR","value":"directory","choices":[])"));
}

// Programs that use the library are refused what the flags refuse.
TEST(OptionTable, RangesOfTrainingAreTheLibrarys) {
  int num_checked = 0;
  for (const OptionDef& option : option_table()) {
    const bool is_training =
        option.group == OptionGroup::training || option.group == OptionGroup::data;
    const bool is_number = option.kind == OptionKind::integer || option.kind == OptionKind::number;
    if (!is_training || !is_number || option.limits.max > 1e12) continue;
    Settings settings;
    settings.train.data = "train.jsonl";
    const double beyond = option.limits.max + 1;
    option.apply(settings, option.kind == OptionKind::number
                               ? OptionValue(beyond)
                               : OptionValue(static_cast<int64_t>(beyond)));
    const auto fault = find_option_fault(settings.train);
    ASSERT_TRUE(fault) << option.name;
    EXPECT_TRUE(fault->starts_with(fmt::format("--{}", option.name))) << *fault;
    ++num_checked;
  }
  EXPECT_GE(num_checked, 30);
}

}  // namespace
}  // namespace paceline
