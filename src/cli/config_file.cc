// Reads options from a config file.
#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/suggest.h"
#include "cli/command.h"
#include "cli/config_text.h"
#include "cli/option_source.h"
#include "cli/option_value.h"

namespace paceline {
namespace {

constexpr size_t kMaxSettingsBytes = 1 << 20;

[[noreturn]] void refuse_table(const ConfigEntry& entry, std::string_view where) {
  std::vector<std::string_view> names;
  for (const CommandDef& command : command_table()) names.push_back(command.name);
  throw error_of(ErrorCode::invalid, "{}: [{}] is not a command{}", where, entry.table,
                 did_you_mean(entry.table, names));
}

[[noreturn]] void refuse_key(const ConfigEntry& entry, std::string_view where) {
  std::vector<std::string> known;
  for (const OptionDef& option : option_table()) {
    if (option.flag_only) continue;
    for (std::string& field : field_names(option)) known.push_back(std::move(field));
  }
  const std::vector<std::string_view> names(known.begin(), known.end());
  throw error_of(ErrorCode::invalid, "{}: unknown key {}{}", where, entry.key,
                 did_you_mean(entry.key, names));
}

// The option that an entry sets for `command`; nullptr when it is for another command.
const OptionDef* option_of(const ConfigEntry& entry, std::string_view command_name,
                           CommandId command, std::string_view where) {
  const CommandDef* table = nullptr;
  for (const CommandDef& candidate : command_table()) {
    if (candidate.name == entry.table) table = &candidate;
  }
  if (!entry.table.empty() && table == nullptr) refuse_table(entry, where);
  const OptionDef* option = find_option(entry.key, table == nullptr ? command : table->id);
  if (option == nullptr || option->flag_only) refuse_key(entry, where);
  if (option->name == "config") {
    throw error_of(ErrorCode::invalid, "{}: a config file can't name another config file", where);
  }
  if (table != nullptr && !contains(option->commands, table->id)) {
    throw error_of(ErrorCode::invalid, "{}: {} has no option {}", where, entry.table, entry.key);
  }
  const bool is_meant = entry.table.empty() || entry.table == command_name;
  return is_meant && contains(option->commands, command) ? option : nullptr;
}

// Refuses an option that is set under two of its names.
void refuse_repeated(const std::vector<GivenOption>& given, const OptionDef& option,
                     const ConfigEntry& entry, std::string_view where) {
  for (const GivenOption& one : given) {
    if (one.option != &option) continue;
    throw error_of(ErrorCode::invalid, "{}: {} was set before, as {} or another name of it", where,
                   entry.key, option.name);
  }
}

bool is_object_option(std::string_view name, CommandId command) {
  const OptionDef* const option = find_option(name, command);
  return option != nullptr &&
         (option->kind == OptionKind::named_numbers || option->kind == OptionKind::logit_bias);
}

// A table with an option's name is that option's value: [rank_pattern] with q_proj = 16 is
// rank_pattern = { q_proj = 16 }.
std::vector<ConfigEntry> fold_option_tables(std::vector<ConfigEntry> entries, CommandId command) {
  std::vector<ConfigEntry> folded;
  for (size_t i = 0; i < entries.size();) {
    const std::string table = entries[i].table;
    if (table.empty() || !is_object_option(table, command)) {
      folded.push_back(std::move(entries[i++]));
      continue;
    }
    const int line = entries[i].line;
    Json::Object members;
    for (; i < entries.size() && entries[i].table == table; ++i) {
      members.emplace_back(std::move(entries[i].key), std::move(entries[i].value));
    }
    folded.push_back({"", table, Json(std::move(members)), line});
  }
  return folded;
}

std::vector<ConfigEntry> read_entries(const std::string& path, CommandId command) {
  const std::string text = read_text_file(path, kMaxSettingsBytes);
  const std::string extension = std::filesystem::path(path).extension().string();
  const bool is_yaml = extension == ".yaml" || extension == ".yml";
  std::vector<ConfigEntry> entries = is_yaml ? parse_yaml(text, path) : parse_toml(text, path);
  std::erase_if(entries, [](const ConfigEntry& entry) { return entry.value.is_null(); });
  if (command == CommandId::train) entries = translate_mlx_entries(std::move(entries), path);
  return fold_option_tables(std::move(entries), command);
}

}  // namespace

std::vector<GivenOption> read_config_file(std::string_view command_name, CommandId command,
                                          const std::string& path) {
  std::vector<GivenOption> given;
  std::vector<GivenOption> of_command;
  for (const ConfigEntry& entry : read_entries(path, command)) {
    const std::string where = fmt::format("{}:{}", path, entry.line);
    const OptionDef* option = option_of(entry, command_name, command, where);
    if (option == nullptr) continue;
    std::vector<GivenOption>& of_table = entry.table.empty() ? given : of_command;
    refuse_repeated(of_table, *option, entry, where);
    const JsonCursor value = JsonCursor(entry.value, where).below(entry.key, entry.value);
    of_table.push_back({option, read_option_value(*option, value)});
  }
  // Options under the command's own heading win, so they are applied last.
  std::move(of_command.begin(), of_command.end(), std::back_inserter(given));
  return given;
}

}  // namespace paceline
