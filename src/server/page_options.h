// The generation options that are numbers, as a module of the page: its settings are made of them.
#pragma once

#include <string>

namespace paceline {

// "export const OPTIONS = [{"name", "help", "min", "max", "whole", "unset"}, ...];" in the order
// of kGenerationOptions; "unset" says what an empty field means.
std::string page_options_module();

}  // namespace paceline
