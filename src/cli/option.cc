#include "cli/option.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "cli/option_groups.h"
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

// What `option`, which is `above` for other commands, doesn't say itself.
void inherit(const OptionDef& above, OptionDef& option) {
  option.name = above.name;
  if (option.aliases.empty()) option.aliases = above.aliases;
  if (option.placeholder.empty()) option.placeholder = above.placeholder;
  if (option.apply != nullptr) return;
  option.kind = above.kind;
  option.limits = above.limits;
  option.choices = above.choices;
  option.apply = above.apply;
  option.value_of = above.value_of;
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

std::string short_number(double number) {
  std::string words = fmt::format("{}", number);
  const size_t zero = words.find("e-0");  // 1e-05 is 1e-5
  return zero == words.npos ? words : words.erase(zero + 2, 1);
}

std::string short_bytes(uint64_t bytes) {
  static constexpr std::string_view kUnits[] = {"", "K", "M", "G", "T"};
  size_t unit = 0;
  for (; bytes > 0 && bytes % 1024 == 0; bytes /= 1024) ++unit;
  return fmt::format("{}{}", bytes, kUnits[unit]);
}

std::vector<OptionDef> section(OptionGroup group, CommandSet commands,
                               std::span<const OptionDef> options) {
  static std::deque<std::string> defaults;  // viewed by the definitions
  const Settings unset;
  std::vector<OptionDef> all(options.begin(), options.end());
  for (size_t i = 0; i < all.size(); ++i) {
    OptionDef& option = all[i];
    if (option.name.empty()) inherit(all[i - 1], option);
    if (option.group == OptionGroup::of_row_above) option.group = i == 0 ? group : all[i - 1].group;
    if (option.commands == 0) option.commands = commands;
    if (option.value_of == nullptr || !option.default_text.empty()) continue;
    option.default_text = defaults.emplace_back(option.value_of(unset));
  }
  return all;
}

// In the order in which the help shows them.
std::span<const OptionDef> option_table() {
  static const std::vector<OptionDef> table = [] {
    std::vector<OptionDef> all;
    for (const auto group :
         {input_options, constraint_options, generation_options, measuring_options,
          quantizing_options, model_options, adapter_options, batching_options, speculation_options,
          serving_options, general_options, training_options}) {
      for (const OptionDef& option : group()) all.push_back(option);
    }
    return all;
  }();
  return table;
}

}  // namespace paceline
