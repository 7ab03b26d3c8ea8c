// Options of sampling and stopping, made from kGenerationOptions.
#include "text/generation_options.h"

#include <algorithm>
#include <deque>

#include "cli/option_groups.h"

namespace paceline {
namespace {

using enum CommandId;

OptionKind kind_of_option(const GenerationOption& option) {
  using enum OptionKind;
  if (kind_of(option) == GenerationKind::flag && !option.placeholder.empty()) return boolean;
  // In the order of GenerationKind.
  constexpr OptionKind kKinds[] = {flag,   choice, integer,   seed,
                                   number, texts,  token_ids, logit_bias};
  return kKinds[static_cast<size_t>(kind_of(option))];
}

OptionGroup group_of(const GenerationOption& option) {
  switch (option.group) {
    case GenerationGroup::sampling:
    case GenerationGroup::restriction:
      return OptionGroup::sampling;
    case GenerationGroup::stopping:
      return OptionGroup::stopping;
    case GenerationGroup::prompt:
      return OptionGroup::input;
    case GenerationGroup::output:
      return OptionGroup::output;
  }
  return OptionGroup::general;
}

std::string with_dashes(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

std::string flags_of(const GenerationOption& option) {
  std::string flags(option.flags);
  if (option.other_name.empty()) return flags;
  if (!flags.empty()) flags += ' ';
  return flags + "--" + with_dashes(option.other_name);
}

// Tables have no place for log-probabilities.
std::string_view needs_of(const GenerationOption& option) {
  if (option.name == "logprobs") return "jsonl";
  return option.name == "logprob_token_ids" ? "logprobs jsonl" : "";
}

// The option's help, with how to give several values.
std::string help_of(const GenerationOption& option) {
  const OptionKind kind = kind_of_option(option);
  if (!is_repeatable(kind)) return std::string(option.help);
  const std::string_view sentence = option.help.substr(0, option.help.size() - 1);
  const bool is_list = kind == OptionKind::token_ids;
  return std::string(sentence) + (is_list ? "; separated by commas." : "; repeat for several.");
}

// Owns the strings that the definitions view.
struct Definitions {
  std::deque<std::string> texts;
  std::vector<OptionDef> all;

  std::string_view keep(std::string text) { return texts.emplace_back(std::move(text)); }

  void add(const GenerationOption& option) {
    const bool is_drawing = option.group == GenerationGroup::sampling;
    all.push_back({.name = keep(with_dashes(option.name)),
                   .aliases = keep(flags_of(option)),
                   .placeholder = option.placeholder,
                   .kind = kind_of_option(option),
                   .limits = option.range,
                   .choices = option.choices,
                   .default_text = keep(unset_words(option)),
                   .bare_value = option.bare_value,
                   .help = keep(help_of(option)),
                   .group = group_of(option),
                   .commands = is_drawing ? kWriting | set_of({classify}) : kWriting,
                   .needs = needs_of(option),
                   .generation = &option});
  }
};

}  // namespace

std::vector<OptionDef> generation_options() {
  static const Definitions definitions = [] {
    Definitions made;
    for (const GenerationOption& option : kGenerationOptions) {
      if (option.own_reader != OwnReader::command_line) made.add(option);
    }
    return made;
  }();
  return definitions.all;
}

}  // namespace paceline
