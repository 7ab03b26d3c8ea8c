// Reads the value of --lora, the same in every command.
#pragma once

#include <optional>
#include <string>

#include "paceline/options.h"

namespace paceline {

// What a model or an adapter is called: the last part of its path, of a GGUF file without the
// ending.
std::string name_of_path(const std::string& path);

// NAME=DIR, or DIR, whose name is the last part of the path (of a GGUF file without its ending). A
// path that is there is one, also with an equals sign. Nothing when name or directory is empty.
std::optional<LoraSource> read_lora_source(const std::string& text);

}  // namespace paceline
