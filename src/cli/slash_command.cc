#include "cli/slash_command.h"

#include <vector>

#include "base/error.h"
#include "base/suggest.h"

namespace paceline {
namespace {

using Kind = SlashCommand::Kind;

enum class Argument { none, optional, file };

struct Definition {
  std::string_view name;
  Kind kind;
  Argument argument;
};

constexpr Definition kDefinitions[] = {{"/system", Kind::system, Argument::optional},
                                       {"/reset", Kind::reset, Argument::none},
                                       {"/clear", Kind::clear, Argument::none},
                                       {"/regenerate", Kind::regenerate, Argument::none},
                                       {"/save", Kind::save, Argument::file},
                                       {"/load", Kind::load, Argument::file},
                                       {"/stats", Kind::stats, Argument::none},
                                       {"/help", Kind::help, Argument::none},
                                       {"/exit", Kind::exit, Argument::none},
                                       {"/quit", Kind::exit, Argument::none},
                                       {"/bye", Kind::exit, Argument::none}};

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

}  // namespace

SlashCommand read_slash_command(std::string_view line) {
  if (line.starts_with("//")) return {Kind::none, std::string(line.substr(1))};
  if (!line.starts_with("/")) return {Kind::none, std::string(line)};
  const size_t end = line.find_first_of(" \t\n");
  const std::string_view name = line.substr(0, end);
  const std::string_view argument =
      end == std::string_view::npos ? "" : trimmed(line.substr(end + 1));
  std::vector<std::string_view> names;
  for (const Definition& definition : kDefinitions) {
    names.push_back(definition.name);
    if (definition.name != name) continue;
    if (definition.argument == Argument::file && argument.empty()) {
      throw error_of(ErrorCode::invalid, "{} needs a file name", name);
    }
    if (definition.argument == Argument::none && !argument.empty()) {
      throw error_of(ErrorCode::invalid,
                     "{} takes no argument, found \"{}\"; // begins a text with a slash", name,
                     argument);
    }
    return {definition.kind, std::string(argument)};
  }
  throw error_of(ErrorCode::invalid,
                 "unknown command {}{} (/help lists them; // begins a text with a slash)", name,
                 did_you_mean(name, names));
}

std::string_view slash_help() {
  return "/system TEXT   set the system message; without TEXT, show it\n"
         "/reset         start a new conversation\n"
         "/clear         the same, and clear the screen\n"
         "/regenerate    answer the last question again\n"
         "/save FILE     write the conversation as JSON; asks before it overwrites\n"
         "/load FILE     continue a saved conversation\n"
         "/stats         tokens, speed and memory of the last answer\n"
         "/exit          leave (also Ctrl-D)\n"
         "Ctrl-C stops an answer and keeps what was written so far. Pasted text may have several\n"
         "lines; to type several, begin and end them with \"\"\". // begins a text with a slash.\n";
}

}  // namespace paceline
