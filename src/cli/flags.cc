// Splits the arguments of a command into options and their values.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/suggest.h"
#include "cli/option_source.h"
#include "cli/option_value.h"
#include "cli/usage_error.h"

namespace paceline {
namespace {

// Like getopt_long: "--name VALUE", "--name=VALUE", "-n VALUE", "-nVALUE", "-vq" for "-v -q"; only
// operands after "--". A value may begin with '-'. A flag such as "-md" (llama.cpp's) goes before
// "-m d".
class ArgumentSplitter {
 public:
  explicit ArgumentSplitter(CommandId command) {
    for (const OptionDef& option : option_table()) {
      if (!contains(option.commands, command)) continue;
      for (std::string& flag : flags_of(option)) options_.emplace(std::move(flag), &option);
      if (contains(option.bare_in, command)) operand_option_ = &option;
    }
  }

  void split(std::span<const std::string> arguments) {
    rest_ = arguments;
    bool only_operands = false;
    while (!rest_.empty()) {
      const std::string& word = take_word();
      if (only_operands || word.size() < 2 || word[0] != '-') {
        take_operand(word);
      } else if (word == "--") {
        only_operands = true;
      } else if (word[1] == '-') {
        take_long(word);
      } else {
        take_short(word);
      }
    }
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
    std::vector<std::string_view> names;
    for (const auto& [name, option] : options_) {
      if (name.size() > 2) names.push_back(name);
    }
    refuse(fmt::format("unknown option {}{}", flag, did_you_mean(flag, names)));
  }

  void take_operand(const std::string& word) {
    if (operand_option_ != nullptr &&
        (is_repeatable(operand_option_->kind) || texts_of(*operand_option_) == nullptr)) {
      texts_[operand_option_].push_back(word);
      return;
    }
    const std::string_view hint =
        options_.contains("--prompt") ? "; --prompt TEXT gives a text to work on" : "";
    refuse(fmt::format("unexpected argument \"{}\"{}", word, hint));
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
  const OptionDef* operand_option_ = nullptr;        // takes the operands as its values
  std::span<const std::string> rest_;
  std::map<const OptionDef*, std::vector<std::string>> texts_;
  std::optional<std::string> problem_;
};

}  // namespace

std::vector<GivenOption> read_flags(CommandId command, const std::vector<std::string>& arguments) {
  ArgumentSplitter splitter(command);
  splitter.split(arguments);
  // Help is shown even if other arguments are wrong.
  const auto asks_for_help = [](const OptionDef& option) {
    return option.name == "help" || option.name == "help-all";
  };
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
