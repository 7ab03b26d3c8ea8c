// What requests may call the model that a command has opened.
#pragma once

#include <string>
#include <vector>

#include "cli/settings.h"

namespace paceline {

// The names given, else the last part of the model's path (without .gguf) and the path; the first
// is its name.
std::vector<std::string> served_names(const Settings& settings);

}  // namespace paceline
