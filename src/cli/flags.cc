// Splits the arguments of a command into options and their values.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "cli/option_hint.h"
#include "cli/option_source.h"
#include "cli/option_value.h"
#include "cli/usage_error.h"
#include "load/model_path.h"
#include "paceline/error.h"

namespace paceline {
namespace {

// Whether it is the path of a model, or the name of one in the local Hugging Face cache.
bool names_model(const std::string& word) {
  try {
    const std::filesystem::path path = find_model(word);
    return path.extension() == ".gguf" || std::filesystem::exists(path / "config.json");
  } catch (const Error&) {
    return false;
  }
}

// Like getopt_long: "--name VALUE", "--name=VALUE", "-n VALUE", "-nVALUE", "-vn7" for "-v -n 7";
// only operands after "--". A value may begin with '-'. A flag such as "-md" (llama.cpp's) goes
// before
// "-m d".
class ArgumentSplitter {
 public:
  // `leading`: the name of the option that the first operand is; empty: none.
  ArgumentSplitter(CommandId command, std::string_view leading) : command_(command) {
    if (!leading.empty()) bare_options_.push_back(find_option(leading, command));
    for (const OptionDef& option : option_table()) {
      if (!contains(option.commands, command)) continue;
      for (std::string& flag : flags_of(option)) options_.emplace(std::move(flag), &option);
      if (contains(option.bare_in, command)) bare_options_.push_back(&option);
    }
  }

  void split(std::span<const std::string> arguments) {
    rest_ = arguments;
    bool only_operands = false;
    std::vector<const std::string*> operands;
    while (!rest_.empty()) {
      const std::string& word = take_word();
      if (only_operands || word.size() < 2 || word[0] != '-') {
        operands.push_back(&word);
      } else if (word == "--") {
        only_operands = true;
      } else if (word[1] == '-') {
        take_long(word);
      } else {
        take_short(word);
      }
    }
    for (const std::string* word : operands) take_operand(*word);
  }

  // The texts given for `option`, one per repetition; nullptr: it wasn't given.
  const std::vector<std::string>* texts_of(const OptionDef& option) const {
    const auto found = texts_.find(&option);
    return found == texts_.end() ? nullptr : &found->second;
  }
  // The error of the first wrong argument.
  const std::optional<std::string>& problem() const { return problem_; }

 private:
  const std::string& take_word() {
    const std::string& word = rest_.front();
    rest_ = rest_.subspan(1);
    return word;
  }

  void refuse(std::string problem) {
    if (!problem_) problem_ = std::move(problem);
  }

  void refuse_unknown(const std::string& flag) {
    refuse(fmt::format("unknown option {}{}", flag, option_hint(flag, command_)));
  }

  bool takes_operand(const OptionDef& option) const {
    const bool takes_many = is_repeatable(option.kind) && !option.takes_one_bare;
    return takes_many || texts_of(option) == nullptr;
  }

  // A single text that names a model, with no other model given, is a mistake.
  bool is_misplaced_model(const OptionDef& option, const std::string& word) const {
    const OptionDef* const model = find_option("model", command_);
    return option.takes_one_bare && contains(model->commands, command_) &&
           texts_of(*model) == nullptr && names_model(word);
  }

  void take_operand(const std::string& word) {
    for (const OptionDef* option : bare_options_) {
      if (!takes_operand(*option)) continue;
      if (is_misplaced_model(*option, word)) {
        return refuse(
            fmt::format("\"{0}\" is a model: name it with -m {0}; --{1} takes it as a text", word,
                        option->name));
      }
      texts_[option].push_back(word);
      return;
    }
    refuse(fmt::format("unexpected argument \"{}\"{}", word, operand_hint()));
  }

  std::string_view operand_hint() const {
    const bool takes_prompt = std::any_of(bare_options_.begin(), bare_options_.end(),
                                          [](auto* option) { return option->takes_one_bare; });
    if (takes_prompt)
      return "; quote a text of several words, or repeat --prompt for several texts";
    return options_.contains("--file") ? "; --file FILE gives the input" : "";
  }

  // `attached`: the value in the same word.
  void take_option(const OptionDef& option, const std::string& flag,
                   std::optional<std::string> attached) {
    std::vector<std::string>& texts = texts_[&option];
    if (attached) {
      texts.push_back(std::move(*attached));
    } else if (!takes_value(option)) {
      texts.emplace_back("true");
    } else if (!option.bare_value.empty() && (rest_.empty() || rest_.front().starts_with('-'))) {
      texts.emplace_back(option.bare_value);
    } else if (!rest_.empty()) {
      texts.push_back(take_word());
      while (option.takes_list && !rest_.empty() && !rest_.front().starts_with('-')) {
        texts.push_back(take_word());
      }
    } else {
      refuse(fmt::format("{} needs a value: {} {}", flag, flag, option.placeholder));
    }
  }

  void take_long(const std::string& word) {
    const size_t equals = word.find('=');
    const std::string flag = word.substr(0, equals);
    const auto found = options_.find(flag);
    if (found == options_.end()) return refuse_unknown(flag);
    std::optional<std::string> attached;
    if (equals != std::string::npos) attached = word.substr(equals + 1);
    take_option(*found->second, flag, std::move(attached));
  }

  void take_short(const std::string& word) {
    if (word.size() > 2 && options_.contains(word.substr(0, word.find('=')))) {
      return take_long(word);
    }
    if (is_foreign_option(word)) return refuse_unknown(word);
    // "-model x" is a long option with a dash missing, not -m with the value "odel".
    const std::string long_flag = "-" + word.substr(0, word.find('='));
    if (long_flag.size() > 3 && options_.contains(long_flag)) return refuse_unknown(word);
    for (size_t i = 1; i < word.size(); ++i) {
      const std::string flag = {'-', word[i]};
      const auto found = options_.find(flag);
      if (found == options_.end()) return refuse(fmt::format("unknown option {}", flag));
      std::optional<std::string> attached;
      if (takes_value(*found->second) && i + 1 < word.size()) {
        attached = word.substr(word[i + 1] == '=' ? i + 2 : i + 1);
      }
      const bool ends_word = attached.has_value();
      take_option(*found->second, flag, std::move(attached));
      if (ends_word) return;
    }
  }

  std::map<std::string, const OptionDef*> options_;  // by flag
  CommandId command_;
  std::vector<const OptionDef*> bare_options_;  // take the operands, in this order
  std::span<const std::string> rest_;
  std::map<const OptionDef*, std::vector<std::string>> texts_;
  std::optional<std::string> problem_;
};

}  // namespace

std::vector<GivenOption> read_flags(CommandId command, const std::vector<std::string>& arguments,
                                    std::string_view leading) {
  ArgumentSplitter splitter(command, leading);
  splitter.split(arguments);
  // Help is shown even if other arguments are wrong.
  const auto table = option_table();
  const bool wants_help = std::any_of(table.begin(), table.end(), [&](const OptionDef& option) {
    return asks_for_help(option) && splitter.texts_of(option) != nullptr;
  });
  if (splitter.problem() && !wants_help) throw UsageError(*splitter.problem());
  std::vector<GivenOption> given;
  for (const OptionDef& option : option_table()) {
    if (!contains(option.commands, command) || (wants_help && !asks_for_help(option))) continue;
    const auto* texts = splitter.texts_of(option);
    if (texts == nullptr) continue;
    given.push_back({&option, parse_option_value(option, *texts, "--" + std::string(option.name))});
  }
  return given;
}

}  // namespace paceline
