// The definitions of options, a file per subject; option_table() has all of them in this order.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <variant>

#include "cli/option.h"

namespace paceline {

std::vector<OptionDef> input_options();       // groups input and output
std::vector<OptionDef> constraint_options();  // constraint
std::vector<OptionDef> generation_options();  // sampling and stopping
std::vector<OptionDef> measuring_options();   // measuring
std::vector<OptionDef> quantizing_options();  // quantizing
std::vector<OptionDef> training_options();    // data and training
std::vector<OptionDef> model_options();       // model and memory
std::vector<OptionDef> adapter_options();     // model: LoRA
std::vector<OptionDef> batching_options();    // batching
std::vector<OptionDef> speculation_options();
std::vector<OptionDef> serving_options();  // serving
std::vector<OptionDef> general_options();  // general

// Shared by several of the files: sets of commands, and the largest count of tokens.
constexpr CommandSet kLoading =
    set_of({CommandId::generate, CommandId::chat, CommandId::classify, CommandId::decide,
            CommandId::score, CommandId::embed, CommandId::perplexity, CommandId::bench,
            CommandId::batch, CommandId::serve});
constexpr CommandSet kOnModel = kLoading | set_of({CommandId::inspect});
constexpr CommandSet kChatting = set_of({CommandId::chat, CommandId::render});
constexpr CommandSet kWriting = set_of({CommandId::generate, CommandId::chat});
constexpr double kMaxTokens = 2147483647;

inline bool as_flag(const OptionValue& value) { return std::get<bool>(value); }
// Of an integer, or of a choice that is one.
inline int64_t as_integer(const OptionValue& value) {
  const auto* choice = std::get_if<std::string>(&value);
  return choice == nullptr ? std::get<int64_t>(value) : std::stoll(*choice);
}
inline const std::string& as_text(const OptionValue& value) { return std::get<std::string>(value); }
inline const std::vector<std::string>& as_texts(const OptionValue& value) {
  return std::get<std::vector<std::string>>(value);
}

template <class T>
struct StoredOption {
  using Type = T;
};
template <class T>
struct StoredOption<std::optional<T>> : StoredOption<T> {};

template <class T>
consteval OptionKind kind_stored_in() {
  if (std::is_same_v<T, bool>) return OptionKind::flag;
  if (std::is_same_v<T, std::string>) return OptionKind::text;
  if (std::is_same_v<T, std::vector<std::string>>) return OptionKind::texts;
  if (std::is_same_v<T, std::vector<std::vector<int32_t>>>) return OptionKind::token_id_lists;
  if (std::is_same_v<T, uint64_t>) return OptionKind::bytes;
  if (std::is_integral_v<T>) return OptionKind::integer;
  if (std::is_same_v<T, std::vector<int64_t>>) return OptionKind::integers;
  if (std::is_floating_point_v<T>) return OptionKind::number;
  return std::is_same_v<T, std::vector<double>> ? OptionKind::numbers : OptionKind::named_numbers;
}

// The member of Settings that a path of members leads to: kTo<&Settings::train,
// &TrainChoice::seed>.
template <auto... kPath>
constexpr OptionTarget kTo = [] {
  using Member = std::remove_reference_t<decltype((std::declval<Settings&>().*....*kPath))>;
  using Value = typename StoredOption<Member>::Type;
  return OptionTarget{kind_stored_in<Value>(), [](Settings& settings, const OptionValue& value) {
                        auto& member = (settings.*....*kPath);
                        if constexpr (std::is_floating_point_v<Value>) {
                          member = static_cast<Value>(std::get<double>(value));
                        } else if constexpr (std::is_signed_v<Value>) {
                          member = static_cast<Value>(as_integer(value));
                        } else {
                          member = std::get<Value>(value);
                        }
                      }};
}();

// The same of a flag that switches it off.
template <auto... kPath>
constexpr OptionTarget kNot = {OptionKind::flag, [](Settings& settings, const OptionValue& value) {
                                 (settings.*....*kPath) = !as_flag(value);
                               }};

// A row of a table: the option's name, where its value goes, one sentence, and what else it has. A
// number is called N or X in the help and an amount of bytes SIZE, unless the row says otherwise.
constexpr OptionDef option(std::string_view name, const OptionTarget& to, std::string_view help,
                           OptionDef row = {}) {
  row.name = name;
  row.help = help;
  row.kind = to.kind;
  row.apply = to.apply;
  if (!row.choices.empty()) {
    row.kind = to.kind == OptionKind::texts ? OptionKind::choices : OptionKind::choice;
  }
  if (!row.placeholder.empty()) return row;
  if (row.kind == OptionKind::integer) row.placeholder = "N";
  if (row.kind == OptionKind::number) row.placeholder = "X";
  if (row.kind == OptionKind::bytes) row.placeholder = "SIZE";
  return row;
}
// The row above for other commands, with its name, its place and its value.
constexpr OptionDef elsewhere(std::string_view help, OptionDef row) {
  row.help = help;
  return row;
}

// The options of a table. A row without a group or commands gets these.
std::vector<OptionDef> section(OptionGroup group, CommandSet commands,
                               std::span<const OptionDef> options);

}  // namespace paceline
