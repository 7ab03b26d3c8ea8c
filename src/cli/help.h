// Makes the help texts and the machine-readable list of options from the definitions.
#pragma once

#include <string>

#include "cli/command.h"

namespace paceline {

std::string program_help();
// The most used options (--help), or all of them by group (--help-all).
std::string command_help(const CommandDef& command);
std::string whole_command_help(const CommandDef& command);

// JSON lines {"command", "flags", "env", "help", "placeholder", "value", "choices"}, for
// completions and the man page. "value" is none, text, file, directory, choice, or choices (with
// commas).
std::string options_dump();

}  // namespace paceline
