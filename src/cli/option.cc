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
    if (field_name(option) == wanted) return &option;
  }
  return nullptr;
}

const OptionDef* find_option(std::string_view name, CommandId command) {
  const std::string wanted = with_underscores(name);
  for (const OptionDef& option : option_table()) {
    if (field_name(option) == wanted && contains(option.commands, command)) return &option;
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

std::string environment_name(const OptionDef& option) {
  std::string name = "PACELINE_" + with_underscores(option.name);
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return name;
}

std::string field_name(const OptionDef& option) { return with_underscores(option.name); }

}  // namespace paceline
