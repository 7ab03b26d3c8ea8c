#include "cli/resolve.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "cli/usage_error.h"
#include "paceline/error.h"

namespace paceline {
namespace {

const std::string* find_config(const std::vector<GivenOption>& given) {
  const auto found = std::find_if(given.begin(), given.end(),
                                  [](const auto& g) { return g.option->name == "config"; });
  return found == given.end() ? nullptr : &std::get<std::string>(found->value);
}

// Of two sources the stronger one's option wins; in one there is no order.
void check_exclusive(const std::vector<GivenOption>& given) {
  for (const GivenOption& one : given) {
    for (const GivenOption& other : given) {
      if (one.option->excludes.empty() || one.option->excludes != other.option->name) continue;
      throw UsageError(fmt::format("found both --{} and --{}, expected one of them",
                                   other.option->name, one.option->name));
    }
  }
}

void apply_all(const std::vector<GivenOption>& given, Settings& settings) {
  check_exclusive(given);
  for (const GivenOption& one : given) apply_option(*one.option, one.value, settings);
}

}  // namespace

ResolvedSettings resolve_settings(const CommandDef& command,
                                  const std::vector<std::string>& arguments,
                                  const Environment& environment) {
  try {
    ResolvedSettings resolved;
    const auto flags = read_flags(command.id, arguments);
    const bool wants_help = std::any_of(flags.begin(), flags.end(), [](const GivenOption& flag) {
      return flag.option->name == "help" || flag.option->name == "help-all";
    });
    if (!wants_help) {
      const auto variables = read_environment(command.id, environment, resolved.warnings);
      const std::string* config = find_config(flags);
      if (config == nullptr) config = find_config(variables);
      // The weakest source first: later ones overwrite it.
      if (config != nullptr) {
        apply_all(read_config_file(command.name, command.id, *config), resolved.settings);
      }
      apply_all(variables, resolved.settings);
    }
    apply_all(flags, resolved.settings);
    return resolved;
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
}

Environment current_environment() {
  Environment variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) {
      variables.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return variables;
}

}  // namespace paceline
