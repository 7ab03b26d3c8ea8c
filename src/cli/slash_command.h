// A line typed into a chat: text for the model, or a command of the program.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

struct SlashCommand {
  enum class Kind { none, system, reset, clear, regenerate, save, load, stats, help, exit };
  Kind kind = Kind::none;  // none: `text` is for the model
  std::string text;        // the line, or the command's argument
};

// A line that begins with "//" is text that begins with "/". Throws Error invalid, with a
// suggestion, for a command that doesn't exist, lacks its file name or takes no argument.
SlashCommand read_slash_command(std::string_view line);

// A line for each command.
std::string_view slash_help();

}  // namespace paceline
