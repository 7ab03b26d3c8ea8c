#include <fmt/format.h>

#include <deque>

#include "cli/option_groups.h"

namespace paceline {
namespace {

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
