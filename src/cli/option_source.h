// Where an option's value was written: the flags, the environment or the config file.
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

using Environment = std::vector<std::pair<std::string, std::string>>;  // name, value

// The flags of one command. Throws UsageError with a suggestion for what is no flag of it, and
// Error invalid naming the flag for a value that can't be.
std::vector<GivenOption> read_flags(CommandId command, const std::vector<std::string>& arguments);

// The PACELINE_ variables of one command; empty ones count as unset. Unknown ones add to
// `warnings`, with a suggestion; those whose value begins with tcp:// (Kubernetes sets them) are
// passed over.
std::vector<GivenOption> read_environment(CommandId command, const Environment& environment,
                                          std::vector<std::string>& warnings);

// The keys of a TOML file: at its top for every command that has them, under [command] for one.
// Throws Error invalid or not_found, with a suggestion for a key or table that isn't known.
std::vector<GivenOption> read_config_file(std::string_view command_name, CommandId command,
                                          const std::string& path);

}  // namespace paceline
