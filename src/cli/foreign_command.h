// Commands of other programs that don't exist here.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace paceline {

// What does here what Ollama's command `name` does with `argument`; nothing for an unknown name.
std::optional<std::string> foreign_command_advice(std::string_view name, std::string_view argument);

}  // namespace paceline
