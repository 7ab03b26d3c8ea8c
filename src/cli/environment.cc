// Reads options from environment variables.
#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/suggest.h"
#include "cli/option_source.h"
#include "cli/option_value.h"
#include "paceline/error.h"

namespace paceline {
namespace {

constexpr std::string_view kPrefix = "PACELINE_";
// Read elsewhere: the kernels' instruction set, how they read weights, and whether a GPU is
// emulated.
constexpr std::string_view kOtherVariables[] = {"PACELINE_ISA", "PACELINE_STREAMS",
                                                "PACELINE_CUDA_EMULATION"};

std::string unknown_variable(std::string_view name) {
  std::vector<std::string> known(std::begin(kOtherVariables), std::end(kOtherVariables));
  for (const OptionDef& option : option_table()) {
    if (option.flag_only) continue;
    for (const std::string& field : field_names(option)) known.push_back(environment_name(field));
  }
  // Compared without the common prefix, which would make all names similar.
  std::vector<std::string_view> names;
  for (const std::string& full : known)
    names.push_back(std::string_view(full).substr(kPrefix.size()));
  const auto closest = closest_name(name.substr(kPrefix.size()), names);
  return fmt::format("unknown environment variable {}{}", name,
                     closest ? fmt::format("; did you mean {}{}?", kPrefix, *closest) : "");
}

// Several values of an option that may be repeated are a JSON array of strings; every other text is
// one value.
std::vector<std::string> values_of(const OptionDef& option, const std::string& text) {
  if (!is_repeatable(option.kind) || !text.starts_with('[')) return {text};
  std::vector<std::string> values;
  try {
    const Json json = parse_json(text, option.name);
    for (const JsonCursor& item : JsonCursor(json, std::string(option.name)).items()) {
      values.push_back(item.string());
    }
  } catch (const Error&) {
    return {text};
  }
  return values.empty() ? std::vector<std::string>{text} : values;
}

bool is_variable_of(const OptionDef& option, std::string_view name) {
  if (option.flag_only) return false;
  const auto fields = field_names(option);
  return std::any_of(fields.begin(), fields.end(),
                     [&](const std::string& field) { return environment_name(field) == name; });
}

}  // namespace

std::vector<GivenOption> read_environment(CommandId command, const Environment& environment,
                                          std::vector<std::string>& warnings) {
  std::vector<GivenOption> given;
  for (const auto& [name, value] : environment) {
    if (!name.starts_with(kPrefix) || value.empty() || value.starts_with("tcp://")) continue;
    bool is_known = std::find(std::begin(kOtherVariables), std::end(kOtherVariables), name) !=
                    std::end(kOtherVariables);
    for (const OptionDef& option : option_table()) {
      if (!is_variable_of(option, name)) continue;
      is_known = true;
      if (contains(option.commands, command)) {
        given.push_back({&option, parse_option_value(option, values_of(option, value), name)});
      }
    }
    if (!is_known) warnings.push_back(unknown_variable(name));
  }
  return given;
}

}  // namespace paceline
