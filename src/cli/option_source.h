// Reads option values from the flags, the environment and the config file.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/option.h"

namespace paceline {

struct GivenOption {
  const OptionDef* option;
  OptionValue value;
};

// --help or --help-all.
inline bool asks_for_help(const OptionDef& option) {
  return option.name == "help" || option.name == "help-all";
}

using Environment = std::vector<std::pair<std::string, std::string>>;  // name, value

// The flags of one command. Throws UsageError with a suggestion for an unknown flag, and Error
// invalid naming the flag for a wrong value. `leading` names the option whose value is the first
// argument without a flag; the table says what the next ones are.
std::vector<GivenOption> read_flags(CommandId command, const std::vector<std::string>& arguments,
                                    std::string_view leading = {});

// The PACELINE_ variables of one command; empty ones count as unset. Unknown ones add to
// `warnings`, with a suggestion, unless the value begins with tcp:// (Kubernetes sets such
// variables).
std::vector<GivenOption> read_environment(CommandId command, const Environment& environment,
                                          std::vector<std::string>& warnings);

// The keys of a TOML file: those at its top for every command that has them, those under [command]
// for one. Throws Error invalid or not_found, with a suggestion for an unknown key or table.
std::vector<GivenOption> read_config_file(std::string_view command_name, CommandId command,
                                          const std::string& path);

}  // namespace paceline
