// Says what an unknown option probably means.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/option.h"

namespace paceline {

// The end of "unknown option FLAG": "; it is --max-tokens here", "; did you mean --max-tokens?", or
// nothing where no option is near.
std::string option_hint(std::string_view flag, CommandId command);

// Whether another engine has the option, under a name that no option has here.
bool is_foreign_option(std::string_view flag);
std::vector<std::string_view> foreign_options();

}  // namespace paceline
