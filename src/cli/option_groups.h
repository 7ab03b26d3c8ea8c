// The definitions of options, a file per subject; option_table() has all of them in this order.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <variant>

#include "base/option_names.h"
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
            CommandId::score, CommandId::embed, CommandId::perplexity, CommandId::verify,
            CommandId::bench, CommandId::batch, CommandId::serve});
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

// A duration's value is a number of seconds.
template <class T>
inline constexpr bool kIsDuration = false;
template <class Rep, class Period>
inline constexpr bool kIsDuration<std::chrono::duration<Rep, Period>> = true;

template <class T>
consteval OptionKind kind_stored_in() {
  if (std::is_same_v<T, bool>) return OptionKind::flag;
  if (std::is_enum_v<T>) return OptionKind::choice;
  if (std::is_same_v<T, std::string>) return OptionKind::text;
  if (std::is_same_v<T, std::vector<std::string>>) return OptionKind::texts;
  if (std::is_same_v<T, std::vector<std::vector<int32_t>>>) return OptionKind::token_id_lists;
  if (std::is_same_v<T, uint64_t>) return OptionKind::bytes;
  if (std::is_integral_v<T>) return OptionKind::integer;
  if (std::is_same_v<T, std::vector<int64_t>>) return OptionKind::integers;
  if (std::is_floating_point_v<T> || kIsDuration<T>) return OptionKind::number;
  return std::is_same_v<T, std::vector<double>> ? OptionKind::numbers : OptionKind::named_numbers;
}

template <OptionKind kKind, class T>
void store_option(const OptionValue& value, T& member) {
  using Value = typename StoredOption<T>::Type;
  if constexpr (std::is_enum_v<Value>) {
    member = find_option_value<Value>(std::get<std::string>(value)).value();  // one of the choices
  } else if constexpr (kIsDuration<Value>) {
    const std::chrono::duration<double> seconds(std::get<double>(value));
    member = std::chrono::duration_cast<Value>(seconds);
  } else if constexpr (kKind == OptionKind::number) {
    member = static_cast<Value>(std::get<double>(value));
  } else if constexpr (kKind == OptionKind::integer) {
    member = static_cast<Value>(as_integer(value));
  } else if constexpr (kKind == OptionKind::bytes || kKind == OptionKind::seed) {
    member = static_cast<Value>(std::get<uint64_t>(value));
  } else {
    member = std::get<Value>(value);
  }
}

// "8M", "64K".
std::string short_bytes(uint64_t bytes);
// "0.9", "1e-5".
std::string short_number(double number);

// A default as the help says it; empty where there is nothing to say.
template <OptionKind kKind, class T>
std::string default_words(const T& member) {
  if constexpr (std::is_enum_v<T>) {
    return std::string(option_name(member));
  } else if constexpr (kIsDuration<T>) {
    return short_number(std::chrono::duration<double>(member).count());
  } else if constexpr (std::is_floating_point_v<T>) {
    return short_number(member);
  } else if constexpr (kKind == OptionKind::bytes && std::is_integral_v<T>) {
    return short_bytes(static_cast<uint64_t>(member));
  } else if constexpr (kKind != OptionKind::flag && std::is_integral_v<T>) {
    return std::to_string(member);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return member;
  } else {
    return "";
  }
}

// The member of Settings that a path of members leads to, as an option of this kind:
// kAs<OptionKind::seed, &Settings::train, &TrainChoice::seed>.
template <OptionKind kKind, auto... kPath>
constexpr OptionTarget kAs = {
    kKind,
    [](Settings& settings, const OptionValue& value) {
      store_option<kKind>(value, (settings.*....*kPath));
    },
    [](const Settings& settings) { return default_words<kKind>((settings.*....*kPath)); }};

template <auto... kPath>
using StoredAt = typename StoredOption<
    std::remove_reference_t<decltype((std::declval<Settings&>().*....*kPath))>>::Type;

// The same of the kind that the member's type is.
template <auto... kPath>
constexpr OptionTarget kTo = kAs<kind_stored_in<StoredAt<kPath...>>(), kPath...>;

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
  row.value_of = to.value_of;
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

// The options of a table. A row without commands gets these; without a group, that of the row
// above, the first one this.
std::vector<OptionDef> section(OptionGroup group, CommandSet commands,
                               std::span<const OptionDef> options);

}  // namespace paceline
