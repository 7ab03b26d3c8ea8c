// The help texts and the machine-readable list of options, made from the definitions.
#pragma once

#include <string>

#include "cli/command.h"

namespace paceline {

std::string program_help();
std::string command_help(const CommandDef& command);

// JSON lines {"command", "flags", "env", "help", "takes_value"}, for completions and the man page.
std::string options_dump();

}  // namespace paceline
