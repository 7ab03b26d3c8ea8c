// The command line's flags, split by CLI11.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/suggest.h"
#include "cli/option_source.h"
#include "cli/option_value.h"
#include "cli/usage_error.h"

namespace paceline {
namespace {

struct ParsedOption {
  const OptionDef* definition;
  CLI::Option* parsed;
};

std::string joined_flags(const OptionDef& option) {
  return fmt::format("{}", fmt::join(flags_of(option), ","));
}

// The app only splits: it checks and converts nothing.
std::vector<ParsedOption> declare_options(CLI::App& app, CommandId command) {
  const auto keep = [](const CLI::results_t&) { return true; };
  std::vector<ParsedOption> options;
  for (const OptionDef& option : option_table()) {
    if (!contains(option.commands, command)) continue;
    CLI::Option* parsed = nullptr;
    if (!takes_value(option)) {
      parsed = app.add_flag(joined_flags(option));
    } else {
      const bool may_be_bare = contains(option.bare_in, command);
      parsed = app.add_option(
          joined_flags(option) + (may_be_bare ? fmt::format(",{}", option.name) : ""), keep);
      parsed->expected(option.bare_value.empty() ? 1 : 0, 1)->allow_extra_args(false);
    }
    parsed->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    options.push_back({&option, parsed});
  }
  return options;
}

// CLI11 takes the next argument as the value of "--stop=": the empty value becomes an argument.
std::vector<std::string> with_empty_values(std::vector<std::string> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].size() > 3 && arguments[i].rfind("--", 0) == 0 && arguments[i].back() == '=') {
      arguments[i].pop_back();
      arguments.insert(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1, std::string());
      ++i;
    }
  }
  return arguments;
}

[[noreturn]] void refuse_extra(const std::string& extra, CommandId command) {
  if (extra.size() < 2 || extra[0] != '-') {
    throw UsageError(fmt::format("unexpected argument \"{}\"", extra));
  }
  const std::string flag = extra.substr(0, extra.find('='));
  std::vector<std::string> known;
  for (const OptionDef& option : option_table()) {
    if (!contains(option.commands, command)) continue;
    for (std::string& name : flags_of(option)) {
      if (name.size() > 2) known.push_back(std::move(name));
    }
  }
  const std::vector<std::string_view> names(known.begin(), known.end());
  throw UsageError(fmt::format("unknown option {}{}", flag, did_you_mean(flag, names)));
}

OptionValue value_of(const ParsedOption& option) {
  std::vector<std::string> texts = option.parsed->results();
  // A flag that stands alone is "true" to CLI11, an optional value that isn't there "{}" or
  // nothing.
  for (std::string& text : texts) {
    const bool is_bare = text.empty() || text == "{}" || text == "true";
    if (is_bare && !option.definition->bare_value.empty()) text = option.definition->bare_value;
  }
  return parse_option_value(*option.definition, texts, "--" + std::string(option.definition->name));
}

}  // namespace

std::vector<GivenOption> read_flags(CommandId command, const std::vector<std::string>& arguments) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  const std::vector<ParsedOption> options = declare_options(app, command);
  std::vector<std::string> reversed = with_empty_values(arguments);
  std::reverse(reversed.begin(), reversed.end());  // CLI11 pops arguments from the end
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ArgumentMismatch&) {
    throw UsageError(fmt::format("{} needs a value", arguments.back()));
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  const auto is_help = [](const ParsedOption& o) {
    return o.definition->name == "help" && o.parsed->count() > 0;
  };
  const bool wants_help = std::any_of(options.begin(), options.end(), is_help);
  if (const auto extras = app.remaining(); !extras.empty() && !wants_help) {
    refuse_extra(extras.front(), command);
  }
  std::vector<GivenOption> given;
  for (const ParsedOption& option : options) {
    if (option.parsed->count() == 0 || (wants_help && !is_help(option))) continue;
    given.push_back({option.definition, value_of(option)});
  }
  return given;
}

}  // namespace paceline
