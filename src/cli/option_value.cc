#include "cli/option_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>

#include "base/error.h"
#include "base/suggest.h"
#include "cli/text_file.h"
#include "cli/words.h"
#include "tensor/dtype.h"

namespace paceline {
namespace {

[[noreturn]] void refuse(std::string_view where, std::string_view found,
                         std::string_view expected) {
  throw error_of(ErrorCode::invalid, "{}: {}", where, found_instead(found, expected));
}

template <class T>
std::optional<T> parse_whole(std::string_view text) {
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  return parse_number<T>(text);
}

std::string range_text(const OptionDef& option) {
  const auto noun = [&]() -> std::string_view {
    if (option.kind == OptionKind::integers) return "integers";
    if (option.kind == OptionKind::numbers) return "numbers";
    return option.kind == OptionKind::integer ? "an integer" : "a number";
  };
  const bool is_list = option.kind == OptionKind::integers || option.kind == OptionKind::numbers;
  return range_words(noun(), option.limits) + (is_list ? ", separated by commas" : "");
}

template <class T>
T checked(const OptionDef& option, std::optional<T> value, std::string_view found,
          std::string_view where) {
  if (value && option.limits.contains(static_cast<double>(*value))) return *value;
  refuse(where, found, range_text(option));
}

bool parse_flag(std::string_view text, std::string_view where) {
  for (std::string_view yes : {"true", "1", "yes", "on"}) {
    if (text == yes) return true;
  }
  for (std::string_view no : {"false", "0", "no", "off"}) {
    if (text == no) return false;
  }
  refuse(where, shown_text(text), "true or false");
}

std::string check_choice(const OptionDef& option, std::string_view text, std::string_view where) {
  const auto choices = split_words(option.choices);
  // A choice that is a dtype may have the dtype's other names: bf16 is bfloat16.
  const auto dtype = parse_dtype(text);
  for (std::string_view choice : choices) {
    if (text == choice || (dtype && parse_dtype(choice) == dtype)) return std::string(choice);
  }
  refuse(where, shown_text(text),
         fmt::format("one of {}{}", fmt::join(choices, ", "), did_you_mean(text, choices)));
}

// The parts between commas, including empty ones.
std::vector<std::string_view> listed(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t comma = text.find(','); comma != std::string_view::npos; comma = text.find(',')) {
    parts.push_back(text.substr(0, comma));
    text.remove_prefix(comma + 1);
  }
  parts.push_back(text);
  return parts;
}

template <class Range, class Make>
auto each_of(const Range& range, const Make& make) {
  std::vector<decltype(make(*std::begin(range)))> made;
  for (const auto& one : range) made.push_back(make(one));
  return made;
}

int32_t parse_token_id(std::string_view text, std::string_view where) {
  const auto id = parse_whole<int32_t>(text);
  if (!id || *id < 0) refuse(where, shown_text(text), "a token id, an integer from 0 on");
  return *id;
}

constexpr NumberRange kTokenIds = {.min = 0, .max = std::numeric_limits<int32_t>::max()};
// The bias of a token that is never drawn.
constexpr float kNever = -std::numeric_limits<float>::infinity();

std::pair<int32_t, float> parse_bias(std::string_view text, std::string_view where) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) refuse(where, shown_text(text), "ID=VALUE");
  const int32_t id = parse_token_id(text.substr(0, equals), where);
  const std::string_view number = text.substr(equals + 1);
  if (number == "false") return {id, kNever};
  const auto bias = parse_whole<float>(number);
  if (!bias || !std::isfinite(*bias)) {
    refuse(where, shown_text(text), "ID=VALUE with a finite number, or ID=false");
  }
  return {id, *bias};
}

// The name may have equals signs: it may be a regular expression.
std::pair<std::string, double> parse_named_number(const OptionDef& option, std::string_view text,
                                                  std::string_view where) {
  const size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0) {
    refuse(where, shown_text(text), "NAME=NUMBER");
  }
  const std::string_view number = text.substr(equals + 1);
  return {std::string(text.substr(0, equals)),
          checked(option, parse_whole<double>(number), shown_text(number), where)};
}

float bias_of(const JsonCursor& value) {
  if (value.is_bool() && !value.boolean()) return kNever;
  if (!value.is_number()) value.mismatch("a number, or false for never");
  const auto number = static_cast<float>(value.number());
  if (!std::isfinite(number)) value.mismatch("a finite number");
  return number;
}

// {"ID": BIAS, ...} or [[ID, BIAS], ...], as requests have it.
std::vector<std::pair<int32_t, float>> read_bias(const JsonCursor& value) {
  std::vector<std::pair<int32_t, float>> entries;
  if (value.is_array()) {
    for (const JsonCursor& pair : value.items()) {
      if (!pair.is_array() || pair.num_items() != 2) pair.mismatch("[token id, bias]");
      const int64_t id = pair.item(0).integer(kTokenIds);
      entries.emplace_back(static_cast<int32_t>(id), bias_of(pair.item(1)));
    }
    return entries;
  }
  for (const auto& [key, bias] : value.members()) {
    entries.emplace_back(parse_token_id(key, value.name()), bias_of(value.below(key, bias)));
  }
  return entries;
}

std::vector<std::vector<int32_t>> read_token_id_lists(const JsonCursor& value) {
  if (value.num_items() == 0 || !value.item(0).is_array()) return {read_token_ids(value)};
  return each_of(value.items(), read_token_ids);
}

int64_t read_integer(const OptionDef& option, const JsonCursor& value) {
  // `true` in JSON stands for the flag without a value.
  if (value.is_bool() && !option.bare_value.empty() && value.boolean()) {
    return *parse_whole<int64_t>(option.bare_value);
  }
  if (!value.is_number()) value.mismatch(range_text(option));
  const int64_t number = value.integer();
  return checked<int64_t>(option, number, fmt::format("{}", number), value.name());
}

double read_number(const OptionDef& option, const JsonCursor& value) {
  if (!value.is_number()) value.mismatch(range_text(option));
  const double number = value.number();
  return checked<double>(option, number, fmt::format("{}", number), value.name());
}

NamedNumbers read_named_numbers(const OptionDef& option, const JsonCursor& value) {
  NamedNumbers entries;
  for (const auto& [name, number] : value.members()) {
    entries.emplace_back(name, read_number(option, value.below(name, number)));
  }
  return entries;
}

// Paths may have any bytes, other texts are text.
void check_text(const OptionDef& option, std::string_view text, std::string_view where) {
  constexpr std::string_view kTexts[] = {"TEXT", "TEXT,TEXT", "REGEX", "JSON", "NAME", "TOKEN"};
  const bool is_text =
      std::find(std::begin(kTexts), std::end(kTexts), option.placeholder) != std::end(kTexts);
  if (is_text) check_utf8(text, where);
}

// Of the items of a list, or of one alone.
template <class Read>
auto each_item(const JsonCursor& value, const Read& read) {
  return value.is_array() ? each_of(value.items(), read) : std::vector{read(value)};
}

}  // namespace

std::vector<int32_t> parse_token_ids(std::string_view text, std::string_view where) {
  const auto words = split_words(text, " ,\t\r\n");
  std::vector<int32_t> ids;
  ids.reserve(words.size());
  for (size_t i = 0; i < words.size(); ++i) {
    std::string_view word = words[i];
    if (i == 0 && word[0] == '[') word.remove_prefix(1);
    if (i + 1 == words.size() && !word.empty() && word.back() == ']') word.remove_suffix(1);
    if (word.empty() && (i == 0 || i + 1 == words.size())) continue;  // a bracket on its own
    ids.push_back(parse_token_id(word, where));
  }
  return ids;
}

std::vector<std::string> read_texts(const JsonCursor& value) {
  if (value.is_string()) return {value.string()};
  if (!value.is_array()) value.mismatch("a string or an array of strings");
  return each_of(value.items(), [](const JsonCursor& item) { return item.string(); });
}

std::vector<int32_t> read_token_ids(const JsonCursor& value) {
  if (!value.is_array()) value.mismatch("an array of token ids");
  std::vector<int32_t> ids;
  ids.reserve(value.num_items());
  for (const Json& item : value.array()) {
    const auto id = item.integer();
    if (!id || !kTokenIds.contains(*id)) {
      value.below(ids.size(), item).mismatch("a token id, an integer from 0 on");
    }
    ids.push_back(static_cast<int32_t>(*id));
  }
  return ids;
}

uint64_t parse_bytes(std::string_view text, std::string_view where) {
  static constexpr std::string_view kExpected = "a number of bytes such as 65536, 512M or 1.5G";
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const auto number = parse_whole<double>(text.substr(0, digits));
  const std::string_view unit = text.substr(digits);
  if (!number || digits == 0) refuse(where, shown_text(text), kExpected);
  double factor = 1;
  if (!unit.empty() && unit != "B") {
    const size_t power = std::string_view("KMGT").find(unit[0]);
    const std::string_view rest = unit.substr(1);
    if (power == std::string_view::npos || (!rest.empty() && rest != "iB")) {
      refuse(where, shown_text(text), kExpected);
    }
    factor = std::exp2(10.0 * static_cast<double>(power + 1));
  }
  const double bytes = *number * factor;
  if (bytes > 0x1p62) refuse(where, shown_text(text), "at most 4194304T");
  return static_cast<uint64_t>(bytes);
}

OptionValue parse_option_value(const OptionDef& option, std::span<const std::string> texts,
                               std::string_view where) {
  for (const std::string& text : texts) check_text(option, text, where);
  const std::string_view last = texts.back();
  const auto integer = [&](std::string_view text) {
    return checked(option, parse_whole<int64_t>(text), shown_text(text), where);
  };
  const auto number = [&](std::string_view text) {
    return checked(option, parse_whole<double>(text), shown_text(text), where);
  };
  const auto choice = [&](std::string_view text) { return check_choice(option, text, where); };
  switch (option.kind) {
    case OptionKind::flag:
    case OptionKind::boolean:
      return parse_flag(last, where);
    case OptionKind::text:
      return std::string(last);
    case OptionKind::texts:
      return std::vector<std::string>(texts.begin(), texts.end());
    case OptionKind::choice:
      return choice(last);
    case OptionKind::choices:
      return each_of(listed(last), choice);
    case OptionKind::integer:
      return integer(last);
    case OptionKind::integers:
      return each_of(listed(last), integer);
    case OptionKind::number:
      return number(last);
    case OptionKind::numbers:
      return each_of(listed(last), number);
    case OptionKind::bytes:
      return parse_bytes(last, where);
    case OptionKind::seed: {
      const auto seed = parse_whole<uint64_t>(last);
      if (!seed) refuse(where, shown_text(last), "an integer from 0 to 2^64 - 1");
      return *seed;
    }
    case OptionKind::token_ids: {
      std::vector<int32_t> all;
      for (const std::string& text : texts) {
        const auto ids = parse_token_ids(text, where);
        all.insert(all.end(), ids.begin(), ids.end());
      }
      return all;
    }
    case OptionKind::token_id_lists:
      return each_of(texts, [&](std::string_view text) { return parse_token_ids(text, where); });
    case OptionKind::logit_bias:
      return each_of(split_words(fmt::format("{}", fmt::join(texts, ",")), " ,"),
                     [&](std::string_view entry) { return parse_bias(entry, where); });
    case OptionKind::named_numbers:
      return each_of(
          texts, [&](std::string_view text) { return parse_named_number(option, text, where); });
  }
  return std::string(last);
}

OptionValue read_option_value(const OptionDef& option, const JsonCursor& value) {
  const auto integer = [&](const JsonCursor& item) { return read_integer(option, item); };
  const auto number = [&](const JsonCursor& item) { return read_number(option, item); };
  const auto choice = [&](std::string_view text) {
    return check_choice(option, text, value.name());
  };
  switch (option.kind) {
    case OptionKind::flag:
    case OptionKind::boolean:
      return value.boolean();
    case OptionKind::text:
      return value.string();
    case OptionKind::texts:
      return read_texts(value);
    case OptionKind::choice:
      return choice(value.string());
    case OptionKind::choices:
      return each_of(read_texts(value), choice);
    case OptionKind::integer:
      return integer(value);
    case OptionKind::integers:
      return each_item(value, integer);
    case OptionKind::seed:
      return value.unsigned_integer();
    case OptionKind::number:
      return number(value);
    case OptionKind::numbers:
      return each_item(value, number);
    case OptionKind::bytes:
      if (value.is_string()) return parse_bytes(value.string(), value.name());
      return value.unsigned_integer();
    case OptionKind::token_ids:
      return read_token_ids(value);
    case OptionKind::token_id_lists:
      return read_token_id_lists(value);
    case OptionKind::logit_bias:
      return read_bias(value);
    case OptionKind::named_numbers:
      return read_named_numbers(option, value);
  }
  return value.string();
}

}  // namespace paceline
