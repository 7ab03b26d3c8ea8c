#include "cli/help.h"

#include <fmt/format.h>

#include <iterator>
#include <vector>

#include "base/json_writer.h"
#include "cli/words.h"

namespace paceline {
namespace {

constexpr size_t kHelpWidth = 96;
constexpr size_t kHelpColumn = 34;

struct Heading {
  OptionGroup group;
  std::string_view title;
};
constexpr Heading kHeadings[] = {
    {OptionGroup::input, "Input"},
    {OptionGroup::output, "Output"},
    {OptionGroup::constraint, "Constraint"},
    {OptionGroup::sampling, "Sampling"},
    {OptionGroup::stopping, "Stopping"},
    {OptionGroup::measuring, "Measuring"},
    {OptionGroup::quantizing, "Quantising"},
    {OptionGroup::data, "Data"},
    {OptionGroup::training, "Training"},
    {OptionGroup::model, "Model"},
    {OptionGroup::memory, "Memory"},
    {OptionGroup::batching, "Batching"},
    {OptionGroup::speculation, "Speculation"},
    {OptionGroup::serving, "Serving"},
    {OptionGroup::general, "General"},
};

constexpr std::string_view kBasicsOfEveryCommand[] = {"verbose", "quiet", "help", "help-all"};

// Breaks the paragraph into lines of kHelpWidth columns, indented after the first.
std::string wrapped(std::string_view text, size_t indent, size_t first_column) {
  std::string out;
  size_t column = first_column;
  for (std::string_view word : split_words(text)) {
    if (column > indent && column + 1 + word.size() > kHelpWidth) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

enum class Extent : bool { basic, whole };

// "  -n, --max-tokens, --n-predict N"; long names are aligned with and without a short flag. The
// basic help omits further long names.
std::string flags_column(const OptionDef& option, Extent extent) {
  std::vector<std::string> flags = flags_of(option);
  const std::string name = "--" + std::string(option.name);
  if (extent == Extent::basic) {
    std::erase_if(flags, [&](const std::string& flag) { return flag.size() > 2 && flag != name; });
  }
  std::string column = flags[0].size() == 2 ? "  " : "      ";
  column += fmt::format("{}", fmt::join(flags, ", "));
  if (!option.placeholder.empty()) {
    const bool is_optional = !option.bare_value.empty();
    column +=
        fmt::format("{}{}{}", is_optional ? " [" : " ", option.placeholder, is_optional ? "]" : "");
  }
  return column;
}

std::string option_help(const OptionDef& option, Extent extent) {
  std::string text = flags_column(option, extent);
  if (text.size() + 2 > kHelpColumn) {
    text += "\n" + std::string(kHelpColumn, ' ');
  } else {
    text += std::string(kHelpColumn - text.size(), ' ');
  }
  std::string help(option.help);
  if (!option.default_text.empty()) help += fmt::format(" [{}]", option.default_text);
  return text + wrapped(help, kHelpColumn, kHelpColumn) + "\n";
}

std::string basic_options(const CommandDef& command) {
  std::vector<std::string_view> names = split_words(command.basics);
  names.insert(names.end(), std::begin(kBasicsOfEveryCommand), std::end(kBasicsOfEveryCommand));
  std::string text = "Options:\n";
  for (const std::string_view name : names) {
    text += option_help(*find_option(name, command.id), Extent::basic);
  }
  return text;
}

std::string grouped_options(const CommandDef& command) {
  std::string text;
  for (const Heading& heading : kHeadings) {
    std::string options;
    for (const OptionDef& option : option_table()) {
      if (option.group == heading.group && contains(option.commands, command.id)) {
        options += option_help(option, Extent::whole);
      }
    }
    if (!options.empty()) text += fmt::format("{}:\n{}\n", heading.title, options);
  }
  return text;
}

// " [FILE]" for an option that needs no flag, " [TEXT...]" if it may be repeated.
std::string bare_arguments(const CommandDef& command) {
  std::string text;
  for (const OptionDef& option : option_table()) {
    if (!contains(option.bare_in, command.id)) continue;
    text += fmt::format(" [{}{}]", option.placeholder,
                        is_repeatable(option.kind) && !option.takes_one_bare ? "..." : "");
  }
  return text;
}

std::string indented(std::string_view lines) {
  std::string out;
  for (std::string_view line : split_words(lines, "\n")) out += fmt::format("  {}\n", line);
  return out;
}

std::string paragraphs(std::string_view text) {
  std::string out;
  for (std::string_view paragraph : split_words(text, "\n"))
    out += wrapped(paragraph, 0, 0) + "\n\n";
  return out;
}

constexpr std::string_view kItemNotes =
    "The final newline of a file or of standard input is not part of the text. With --jsonl, an "
    "item that fails is answered by {\"error\": {\"code\", \"message\"}}; the others go on, and "
    "the exit code is 1.";
constexpr std::string_view kSourceNotes =
    "Every option is also an environment variable (--max-tokens is PACELINE_MAX_TOKENS) and a key "
    "of the file that --config names (max_tokens; for one command under [command]). A flag "
    "overrides a variable, and a variable overrides the file. An option that may be repeated takes "
    "several values as a JSON array in a variable and as an array in the file.";

bool works_on_items(const CommandDef& command) {
  const OptionDef* jsonl = find_option("jsonl");
  return contains(jsonl->commands, command.id);
}

// What a shell completes the value with: none, files, directories, or the choices.
std::string_view value_kind(const OptionDef& option) {
  if (!takes_value(option)) return "none";
  if (option.kind == OptionKind::choice) return "choice";
  if (option.kind == OptionKind::choices) return "choices";  // several, separated by commas
  for (const std::string_view name : {"FILE", "FILE|NAME", "MODEL", "PATH"}) {
    if (option.placeholder == name) return "file";
  }
  return option.placeholder == "DIR" ? "directory" : "text";
}

void dump_option(std::string& out, std::string_view command, const OptionDef& option) {
  JsonWriter writer(out);
  writer.begin_object().member("command", command).key("flags").begin_array();
  for (const std::string& flag : flags_of(option)) writer.string(flag);
  std::string help(option.help);
  if (!option.default_text.empty()) help += fmt::format(" Default: {}.", option.default_text);
  writer.end_array().member("env",
                            option.flag_only ? "" : environment_name(field_names(option)[0]));
  writer.member("help", help).member("placeholder", option.placeholder);
  writer.member("value", value_kind(option)).key("choices").begin_array();
  for (const std::string_view choice : split_words(option.choices)) writer.string(choice);
  writer.end_array().end_object();
  out += "\n";
}

// Summary, usage and examples.
std::string command_head(const CommandDef& command) {
  const std::string alias =
      command.alias.empty()
          ? ""
          : fmt::format("       paceline {}{}{} is the same\n", command.alias,
                        command.alias_takes.empty() ? "" : " MODEL", bare_arguments(command));
  return fmt::format("{}.\n\nUsage: paceline {}{} [OPTION...]\n{}\n{}\n", command.summary,
                     command.name, bare_arguments(command), alias, indented(command.examples));
}

}  // namespace

std::string program_help() {
  std::string text =
      "Runs large language models on the processor of this machine.\n\n"
      "Usage: paceline COMMAND [OPTION...]\n\nCommands:\n";
  for (const CommandDef& command : command_table()) {
    text += fmt::format("  {:<12}{}\n", command.name, command.summary);
  }
  text +=
      "\nOptions:\n"
      "  -h, --help  Print this help; after a command, its most used options\n"
      "  --help-all  After a command: print all of its options\n"
      "  --version   Print the version\n\n"
      "Without --model, a small model that comes with Paceline is used:\n"
      "  paceline generate -p \"It was a dark and stormy night\"\n\n"
      "Exit codes: 0 done, 1 failed, 2 bad usage, 130 interrupted.\n";
  return text;
}

std::string command_help(const CommandDef& command) {
  return command_head(command) + paragraphs(command.notes) + basic_options(command);
}

std::string whole_command_help(const CommandDef& command) {
  std::string text = command_head(command) + paragraphs(command.notes);
  text += paragraphs(command.details) + grouped_options(command);
  if (works_on_items(command)) text += paragraphs(kItemNotes);
  return text + wrapped(kSourceNotes, 0, 0) + "\n";
}

std::string options_dump() {
  static constexpr OptionDef kOfProgram[] = {
      option("help", {}, "Print the commands.", {.aliases = "-h", .flag_only = true}),
      option("version", {}, "Print the version.", {.flag_only = true})};
  std::string out;
  for (const OptionDef& option : kOfProgram) dump_option(out, "", option);
  for (const CommandDef& command : command_table()) {
    for (const OptionDef& option : option_table()) {
      if (contains(option.commands, command.id)) dump_option(out, command.name, option);
    }
  }
  return out;
}

}  // namespace paceline
