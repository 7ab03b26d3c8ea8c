#include "protocol/field_match.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_writer.h"

namespace paceline {
namespace {

uint64_t max_of(const FieldType& type, uint64_t max_choices) {
  return type.counts_choices ? std::min(type.max, max_choices) : type.max;
}

std::string text_words(const FieldType& type) {
  if (type.words.empty()) return "a string";
  std::string all;
  for (const std::string_view word : type.words) {
    if (!all.empty()) all += type.words.size() == 2 ? " or " : ", ";
    all += json_quote(word);
  }
  return type.words.size() > 2 ? "one of " + all : all;
}

std::string parts_words(const FieldType& type) {
  std::string all;
  for (const FieldType& part : type.parts) {
    if (!all.empty()) all += " or ";
    all += expected_words(part, 0);
  }
  return all;
}

std::string_view boolean_words(Booleans booleans) {
  if (booleans == Booleans::both) return "true or false";
  return booleans == Booleans::only_true ? "true" : "false";
}

}  // namespace

bool WholeNumber::is_within(int64_t min, uint64_t max) const {
  if (is_negative) return min < 0 && static_cast<int64_t>(bits) >= min;
  return bits <= max && (min <= 0 || bits >= static_cast<uint64_t>(min));
}

std::optional<WholeNumber> whole_number(const Json& json) {
  if (const auto value = json.integer()) {
    return WholeNumber{*value < 0, static_cast<uint64_t>(*value)};
  }
  if (const auto value = json.unsigned_integer()) return WholeNumber{false, *value};
  return std::nullopt;
}

bool is_token_id_text(std::string_view key) {
  constexpr size_t kMaxDigits = 9;
  return !key.empty() && key.size() <= kMaxDigits &&
         std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_of_kind(const Json& json, const FieldType& type) {
  switch (type.kind) {
    case FieldKind::any:
      return true;
    case FieldKind::boolean:
      return json.is_bool();
    case FieldKind::integer:
      return whole_number(json).has_value();
    case FieldKind::number:
      return json.is_number();
    case FieldKind::text:
      return json.is_string();
    case FieldKind::array:
    case FieldKind::tuple:
      return json.is_array();
    case FieldKind::object:
      return json.is_object();
    case FieldKind::one_of:
      break;
  }
  return std::any_of(type.parts.begin(), type.parts.end(),
                     [&](const FieldType& part) { return is_of_kind(json, part); });
}

bool is_in_range(const Json& json, const FieldType& type, uint64_t max_choices) {
  switch (type.kind) {
    case FieldKind::boolean:
      return type.booleans == Booleans::both ||
             *json.boolean() == (type.booleans == Booleans::only_true);
    case FieldKind::integer:
      return whole_number(json)->is_within(type.min, max_of(type, max_choices));
    case FieldKind::number:
      return type.range.contains(*json.number());
    case FieldKind::text:
      return type.words.empty() ||
             std::find(type.words.begin(), type.words.end(), *json.string()) != type.words.end();
    default:
      return true;
  }
}

bool is_plain_match(const Json& json, const FieldType& type) {
  if (type.kind == FieldKind::one_of) {
    return std::any_of(type.parts.begin(), type.parts.end(),
                       [&](const FieldType& part) { return is_plain_match(json, part); });
  }
  const bool is_plain = type.kind == FieldKind::integer || type.kind == FieldKind::number;
  return is_plain && is_of_kind(json, type) && is_in_range(json, type, 0);
}

bool is_like(const Json& json, const FieldType& type) {
  if (!is_of_kind(json, type)) return false;
  if (type.kind != FieldKind::array || type.item == nullptr) return true;
  const Json::Array& array = *json.array();
  // A number with a fraction counts as a wrong integer.
  return array.empty() || is_of_kind(array[0], *type.item) ||
         (array[0].is_number() && type.item->kind == FieldKind::integer);
}

std::string expected_words(const FieldType& type, uint64_t max_choices) {
  if (!type.expected.empty()) return std::string(type.expected);
  switch (type.kind) {
    case FieldKind::boolean:
      return std::string(boolean_words(type.booleans));
    case FieldKind::integer: {
      if (type.max == kNoMaximum) return "an integer of 64 bits";
      const uint64_t max = max_of(type, max_choices);
      if (type.min >= 0 && static_cast<uint64_t>(type.min) == max) return std::to_string(max);
      return fmt::format("an integer from {} to {}", type.min, max);
    }
    case FieldKind::number:
      return range_words("a number", type.range);
    case FieldKind::text:
      return text_words(type);
    case FieldKind::array:
    case FieldKind::tuple:
      return "an array";
    case FieldKind::object:
      return "an object";
    case FieldKind::one_of:
      return parts_words(type);
    case FieldKind::any:
      break;
  }
  return "another value";
}

}  // namespace paceline
