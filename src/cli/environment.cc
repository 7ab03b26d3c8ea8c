// The environment variables that are options.
#include <fmt/format.h>

#include <algorithm>

#include "base/suggest.h"
#include "cli/option_source.h"
#include "cli/option_value.h"

namespace paceline {
namespace {

constexpr std::string_view kPrefix = "PACELINE_";
// Read elsewhere: the kernels' instruction set, and how their products of a few rows read weights.
constexpr std::string_view kOtherVariables[] = {"PACELINE_ISA", "PACELINE_STREAMS"};

std::string unknown_variable(std::string_view name) {
  std::vector<std::string> known(std::begin(kOtherVariables), std::end(kOtherVariables));
  for (const OptionDef& option : option_table()) {
    if (!option.flag_only) known.push_back(environment_name(option));
  }
  // The common prefix must not make everything look alike.
  std::vector<std::string_view> names;
  for (const std::string& full : known)
    names.push_back(std::string_view(full).substr(kPrefix.size()));
  const auto closest = closest_name(name.substr(kPrefix.size()), names);
  return fmt::format("the environment variable {} is no option{}", name,
                     closest ? fmt::format("; did you mean {}{}?", kPrefix, *closest) : "");
}

}  // namespace

std::vector<GivenOption> read_environment(CommandId command, const Environment& environment,
                                          std::vector<std::string>& warnings) {
  std::vector<GivenOption> given;
  for (const auto& [name, value] : environment) {
    if (name.rfind(kPrefix, 0) != 0 || value.empty() || value.rfind("tcp://", 0) == 0) continue;
    bool is_known = std::find(std::begin(kOtherVariables), std::end(kOtherVariables), name) !=
                    std::end(kOtherVariables);
    for (const OptionDef& option : option_table()) {
      if (option.flag_only || environment_name(option) != name) continue;
      is_known = true;
      if (contains(option.commands, command)) {
        given.push_back({&option, parse_option_value(option, std::span(&value, 1), name)});
      }
    }
    if (!is_known) warnings.push_back(unknown_variable(name));
  }
  return given;
}

}  // namespace paceline
