#include "cli/slash_command.h"

#include <fmt/format.h>

#include <vector>

#include "base/error.h"
#include "base/suggest.h"

namespace paceline {
namespace {

using Kind = SlashCommand::Kind;

struct Definition {
  std::string_view name;
  Kind kind;
  bool needs_file;
};

constexpr Definition kDefinitions[] = {
    {"/system", Kind::system, false}, {"/reset", Kind::reset, false}, {"/save", Kind::save, true},
    {"/load", Kind::load, true},      {"/stats", Kind::stats, false}, {"/help", Kind::help, false},
    {"/exit", Kind::exit, false},     {"/quit", Kind::exit, false},   {"/bye", Kind::exit, false}};

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
  const std::string_view rest = end == std::string_view::npos ? "" : line.substr(end + 1);
  std::vector<std::string_view> names;
  for (const Definition& definition : kDefinitions) {
    names.push_back(definition.name);
    if (definition.name != name) continue;
    if (definition.needs_file && trimmed(rest).empty()) {
      throw Error(ErrorCode::invalid, fmt::format("{} needs a file name", name));
    }
    return {definition.kind, std::string(trimmed(rest))};
  }
  throw Error(ErrorCode::invalid,
              fmt::format("no command {}{} (/help lists them; // begins a text with a slash)", name,
                          did_you_mean(name, names)));
}

std::string_view slash_help() {
  return "/system TEXT   set the system message; alone, show it\n"
         "/reset         begin a new conversation\n"
         "/save FILE     write the conversation as JSON\n"
         "/load FILE     go on with a saved one\n"
         "/stats         tokens, speed and memory of the last answer\n"
         "/exit          leave (also Ctrl-D)\n"
         "Ctrl-C stops an answer and keeps what came. Pasted text may have several lines. \"\"\" "
         "begins a\n"
         "text of several lines and ends it. A text that begins with a slash is typed with two.\n";
}

}  // namespace paceline
