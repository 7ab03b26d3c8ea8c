// An option has one definition: flag, variable, config key, JSON field, help and checks come from
// it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/number_range.h"
#include "cli/settings.h"

namespace paceline {

struct GenerationOption;

enum class CommandId : uint8_t {
  generate,
  chat,
  classify,
  decide,
  score,
  embed,
  render,
  tokenize,
  detokenize,
  grammar,
  perplexity,
  inspect,
  list,
  bench,
  trace,
  batch,
  serve,
  quantize,
  convert,
  train,
  adapter,
  fuse,
  verify,
};

using CommandSet = uint32_t;

constexpr CommandSet set_of(std::initializer_list<CommandId> ids) {
  CommandSet set = 0;
  for (CommandId id : ids) set |= CommandSet{1} << static_cast<unsigned>(id);
  return set;
}

constexpr CommandSet kEveryCommand = ~CommandSet{0};

constexpr bool contains(CommandSet set, CommandId id) { return (set & set_of({id})) != 0; }

// The headings of the help, in its order.
enum class OptionGroup : uint8_t {
  of_row_above,  // of its table; the first row has that of the table
  input,
  output,
  constraint,
  sampling,
  stopping,
  measuring,
  quantizing,
  data,
  training,
  model,
  memory,
  batching,
  speculation,
  serving,
  general
};

enum class OptionKind : uint8_t {
  flag,            // bool, true when it is there
  boolean,         // bool, written true or false
  text,            // std::string
  texts,           // std::vector<std::string>; repeatable
  choice,          // std::string, one of `choices`
  integer,         // int64_t within `limits`
  integers,        // std::vector<int64_t>, each within `limits`, separated by commas
  choices,         // std::vector<std::string>, each one of `choices`, separated by commas
  seed,            // uint64_t
  number,          // double within `limits`
  numbers,         // std::vector<double>, each within `limits`, separated by commas
  bytes,           // uint64_t, written 512M or 4G
  token_ids,       // std::vector<int32_t>; repeatable
  token_id_lists,  // std::vector<std::vector<int32_t>>, one a repetition
  logit_bias,      // std::vector<std::pair<int32_t, float>>; repeatable
  named_numbers,   // NamedNumbers, each within `limits`, written NAME=NUMBER; repeatable
};

using OptionValue = std::variant<bool, std::string, std::vector<std::string>, int64_t, uint64_t,
                                 double, std::vector<int32_t>, std::vector<std::vector<int32_t>>,
                                 std::vector<std::pair<int32_t, float>>, std::vector<int64_t>,
                                 std::vector<double>, NamedNumbers>;

// Where an option's value is stored, and the kind that this makes it.
struct OptionTarget {
  OptionKind kind = OptionKind::flag;
  void (*apply)(Settings& settings, const OptionValue& value) = nullptr;
  std::string (*value_of)(const Settings& settings) = nullptr;  // as the help says it
};

struct OptionDef {
  // "max-tokens": --max-tokens, PACELINE_MAX_TOKENS, max_tokens. Empty in a table: this is the
  // definition above for other commands, with its names, its place and, if need be, its value.
  std::string_view name = "";
  std::string_view aliases = "";      // further flags, separated by blanks: "-n --n-predict"
  std::string_view placeholder = "";  // what the value is called in the help
  OptionKind kind = OptionKind::flag;
  NumberRange limits = {};
  std::string_view choices = "";       // separated by blanks
  std::string_view default_text = "";  // as the help says it; empty: value_of(Settings())
  std::string_view bare_value = "";    // not empty: the value of the flag without one
  std::string_view help = "";          // one sentence
  OptionGroup group = OptionGroup::of_row_above;
  CommandSet commands = 0;  // 0: those of its table
  // Options, one of them to be given too; else a warning says that this one has no effect:
  // "name", "name=value" (one of its values), or one word "!name" or "!name=value" for what takes
  // the effect away.
  std::string_view needs = "";
  // Options that can't be given beside it; of two sources the stronger one's counts.
  std::string_view excludes = "";
  CommandSet bare_in = 0;       // commands that take it without its flag
  bool takes_one_bare = false;  // of a repeatable option: one value without its flag
  bool flag_only = false;       // no variable, no config key
  bool takes_list = false;      // the words up to the next flag are its values
  const GenerationOption* generation = nullptr;  // sets settings.generate as the table says; or
  // does this; the value is of the kind's type.
  void (*apply)(Settings& settings, const OptionValue& value) = nullptr;
  std::string (*value_of)(const Settings& settings) = nullptr;  // for the help
};

// Throws Error invalid for lists and texts that exceed the option's limits.
void apply_option(const OptionDef& option, const OptionValue& value, Settings& settings);

std::span<const OptionDef> option_table();

// nullptr when no option has the name or long alias (with '-' or '_' between its words). If several
// commands define the name: the first definition, or that of `command`.
const OptionDef* find_option(std::string_view name);
const OptionDef* find_option(std::string_view name, CommandId command);

// "--max-tokens" and every alias, short ones first.
std::vector<std::string> flags_of(const OptionDef& option);
// "max_tokens" and every long alias, as keys of a config file and, in upper case, as variables.
std::vector<std::string> field_names(const OptionDef& option);
std::string environment_name(std::string_view field);  // "PACELINE_MAX_TOKENS" of "max_tokens"

constexpr bool takes_value(const OptionDef& option) { return option.kind != OptionKind::flag; }
constexpr bool is_repeatable(OptionKind kind) {
  return kind == OptionKind::texts || kind == OptionKind::token_ids ||
         kind == OptionKind::token_id_lists || kind == OptionKind::logit_bias ||
         kind == OptionKind::named_numbers;
}

}  // namespace paceline
