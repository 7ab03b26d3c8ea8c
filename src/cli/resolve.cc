#include "cli/resolve.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "cli/usage_error.h"
#include "cli/words.h"
#include "paceline/error.h"

namespace paceline {
namespace {

const std::string* find_config(const std::vector<GivenOption>& given) {
  const auto found = std::find_if(given.begin(), given.end(),
                                  [](const auto& g) { return g.option->name == "config"; });
  return found == given.end() ? nullptr : &std::get<std::string>(found->value);
}

void apply_all(const std::vector<GivenOption>& given, Settings& settings) {
  for (const GivenOption& one : given) apply_option(*one.option, one.value, settings);
}

// The values that count, by option.
using GivenValues = std::map<std::string_view, const GivenOption*>;

// Whether the value is `wanted`, begins with it (cuda:1 is a cuda), or has it as an element; an
// empty one is any.
bool matches(const OptionValue& value, std::string_view wanted) {
  if (wanted.empty()) return true;
  if (const auto* text = std::get_if<std::string>(&value)) return text->starts_with(wanted);
  const auto* texts = std::get_if<std::vector<std::string>>(&value);
  return texts != nullptr && std::find(texts->begin(), texts->end(), wanted) != texts->end();
}

bool is_given(const GivenValues& given, std::string_view name, std::string_view value = {}) {
  const auto found = given.find(name);
  return found != given.end() && matches(found->second->value, value);
}

// Whether one word of OptionDef::needs holds.
bool holds(std::string_view need, const GivenValues& given) {
  const bool is_negated = need.starts_with('!');
  if (is_negated) need.remove_prefix(1);
  const size_t equals = std::min(need.find('='), need.size());
  return is_given(given, need.substr(0, equals), need.substr(std::min(equals + 1, need.size()))) !=
         is_negated;
}

// "no effect without --lora or --enable-lora"; "no effect beside --api-key".
std::string idle_text(std::string_view needs) {
  const auto flag_of = [](std::string_view need) {
    std::string flag = "--" + std::string(need);
    std::replace(flag.begin(), flag.end(), '=', ' ');
    return flag;
  };
  if (needs.starts_with('!')) return "no effect beside " + flag_of(needs.substr(1));
  std::vector<std::string> flags;
  for (std::string_view need : split_words(needs)) flags.push_back(flag_of(need));
  const std::string last = flags.back();
  flags.pop_back();
  if (flags.empty()) return "no effect without " + last;
  return fmt::format("no effect without {} or {}", fmt::join(flags, ", "), last);
}

// A flag that was given as false.
bool is_off(const GivenOption& one) {
  const bool* const flag = std::get_if<bool>(&one.value);
  return flag != nullptr && !*flag;
}

bool excludes(const OptionDef& option, const OptionDef& other) {
  const auto names = split_words(option.excludes);
  return std::find(names.begin(), names.end(), other.name) != names.end();
}

bool exclude_each_other(const OptionDef& a, const OptionDef& b) {
  return excludes(a, b) || excludes(b, a);
}

// Refuses options that contradict each other, and warns of those without effect.
void check_relations(const std::vector<GivenOption>& all, std::vector<std::string>& warnings) {
  GivenValues given;
  for (const GivenOption& one : all) {
    if (is_off(one)) {
      given.erase(one.option->name);
    } else {
      given[one.option->name] = &one;
    }
  }
  for (const auto& [name, one] : given) {
    for (std::string_view other : split_words(one->option->excludes)) {
      if (!is_given(given, other)) continue;
      throw UsageError("--{} and --{} exclude each other: give one of them", name, other);
    }
    const auto needs = split_words(one->option->needs);
    const auto has_effect = [&](std::string_view need) { return holds(need, given); };
    if (needs.empty() || std::any_of(needs.begin(), needs.end(), has_effect)) continue;
    warnings.push_back(fmt::format("--{}: {}", name, idle_text(one->option->needs)));
  }
}

// Adds those of a stronger source; weaker ones that they exclude go.
void append(std::vector<GivenOption>&& more, std::vector<GivenOption>& all) {
  std::erase_if(all, [&](const GivenOption& weaker) {
    return std::any_of(more.begin(), more.end(), [&](const GivenOption& one) {
      return !is_off(one) && exclude_each_other(*one.option, *weaker.option);
    });
  });
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

ResolvedSettings resolve_settings(const CommandDef& command,
                                  const std::vector<std::string>& arguments,
                                  const Environment& environment, std::string_view leading) {
  try {
    ResolvedSettings resolved;
    auto flags = read_flags(command.id, arguments, leading);
    const bool wants_help = std::any_of(flags.begin(), flags.end(), [](const GivenOption& flag) {
      return asks_for_help(*flag.option);
    });
    std::vector<GivenOption> all;  // the weakest source first: later ones overwrite it
    if (!wants_help) {
      auto variables = read_environment(command.id, environment, resolved.warnings);
      const std::string* config = find_config(flags);
      if (config == nullptr) config = find_config(variables);
      if (config != nullptr) append(read_config_file(command.name, command.id, *config), all);
      append(std::move(variables), all);
    }
    append(std::move(flags), all);
    apply_all(all, resolved.settings);
    if (!wants_help) check_relations(all, resolved.warnings);
    return resolved;
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
}

Environment current_environment() {
  Environment variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) {
      variables.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return variables;
}

}  // namespace paceline
