#include "cli/option.h"

#include <algorithm>

#include "cli/words.h"
#include "text/generation_options.h"

namespace paceline {
namespace {

std::string with_underscores(std::string_view name) {
  std::string out(name);
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

// By its own name or a long alias: "temp" is "temperature".
bool is_named(const OptionDef& option, std::string_view field) {
  const auto names = field_names(option);
  return std::find(names.begin(), names.end(), field) != names.end();
}

}  // namespace

void apply_option(const OptionDef& option, const OptionValue& value, Settings& settings) {
  if (option.generation == nullptr) return option.apply(settings, value);
  std::visit(
      [&](const auto& typed) {
        if constexpr (std::is_constructible_v<GenerationValue, decltype(typed)>) {
          set_option(settings.generate, *option.generation, typed);
        }
      },
      value);
}

const OptionDef* find_option(std::string_view name) {
  const std::string wanted = with_underscores(name);
  for (const OptionDef& option : option_table()) {
    if (is_named(option, wanted)) return &option;
  }
  return nullptr;
}

const OptionDef* find_option(std::string_view name, CommandId command) {
  const std::string wanted = with_underscores(name);
  for (const OptionDef& option : option_table()) {
    if (is_named(option, wanted) && contains(option.commands, command)) return &option;
  }
  return find_option(name);
}

std::vector<std::string> flags_of(const OptionDef& option) {
  std::vector<std::string> flags = {"--" + std::string(option.name)};
  for (std::string_view alias : split_words(option.aliases)) flags.emplace_back(alias);
  std::stable_partition(flags.begin(), flags.end(),
                        [](const std::string& flag) { return flag.size() == 2; });
  return flags;
}

std::string environment_name(std::string_view field) {
  std::string name = "PACELINE_" + std::string(field);
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return name;
}

std::vector<std::string> field_names(const OptionDef& option) {
  std::vector<std::string> names = {with_underscores(option.name)};
  for (std::string_view alias : split_words(option.aliases)) {
    if (alias.starts_with("--")) names.push_back(with_underscores(alias.substr(2)));
  }
  return names;
}

}  // namespace paceline
