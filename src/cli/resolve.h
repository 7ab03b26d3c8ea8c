// Makes settings from flags, environment and config file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/option_source.h"

namespace paceline {

struct ResolvedSettings {
  Settings settings;
  std::vector<std::string> warnings;
};

// A flag wins over a variable, a variable over the config file, the file over the default. Throws
// UsageError naming the flag, variable or file and line at fault. `leading` is that of
// read_flags().
ResolvedSettings resolve_settings(const CommandDef& command,
                                  const std::vector<std::string>& arguments,
                                  const Environment& environment, std::string_view leading = {});

// The variables of this process.
Environment current_environment();

}  // namespace paceline
