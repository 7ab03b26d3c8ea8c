#include "protocol/field_value.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_writer.h"
#include "base/request_error.h"

namespace paceline {
namespace {

// An integer, or a double that is one exactly.
struct WholeNumber {
  bool is_negative = false;
  uint64_t bits = 0;  // two's complement

  bool is_within(int64_t min, uint64_t max) const {
    if (is_negative) return min < 0 && static_cast<int64_t>(bits) >= min;
    return bits <= max && (min <= 0 || bits >= static_cast<uint64_t>(min));
  }
};

std::string expected_words(const FieldType& type, uint64_t max_choices);

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

std::optional<WholeNumber> whole_number(const Json& json) {
  if (const auto value = json.integer()) {
    return WholeNumber{*value < 0, static_cast<uint64_t>(*value)};
  }
  if (const auto value = json.unsigned_integer()) return WholeNumber{false, *value};
  return std::nullopt;
}

// Whether a key looks like a token id: at most 9 digits.
bool is_token_id_text(std::string_view key) {
  constexpr size_t kMaxDigits = 9;
  return !key.empty() && key.size() <= kMaxDigits &&
         std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Whether the JSON is a boolean, a string, ... as the type requires.
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

// Whether a value of the right kind is one of the type's words, within its bounds, ... Doesn't look
// into containers, nor at the length of texts.
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

// Both, for types that need no other check. False may mean that the type needs one.
bool is_plain_match(const Json& json, const FieldType& type) {
  if (type.kind == FieldKind::one_of) {
    return std::any_of(type.parts.begin(), type.parts.end(),
                       [&](const FieldType& part) { return is_plain_match(json, part); });
  }
  const bool is_plain = type.kind == FieldKind::integer || type.kind == FieldKind::number;
  return is_plain && is_of_kind(json, type) && is_in_range(json, type, 0);
}

// Whether the JSON is meant as `type`, a part of a one_of. The first item tells arrays apart.
bool is_like(const Json& json, const FieldType& type) {
  if (!is_of_kind(json, type)) return false;
  if (type.kind != FieldKind::array || type.item == nullptr) return true;
  const Json::Array& array = *json.array();
  // A number with a fraction counts as a wrong integer.
  return array.empty() || is_of_kind(array[0], *type.item) ||
         (array[0].is_number() && type.item->kind == FieldKind::integer);
}

// "an integer from 1 to 16", as messages say it.
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

}  // namespace

void FieldValue::refuse(std::string_view expected) const {
  throw invalid_field(path(), found_instead(at_.node().shown(), expected));
}

void FieldValue::refuse_unsupported(std::string_view only) const {
  throw RequestError(
      path(), ErrorReason::unsupported_parameter,
      fmt::format("{}: found {}, only {} is supported", path(), at_.node().shown(), only));
}

void FieldValue::check(const FieldType& type) const {
  if (type.kind == FieldKind::one_of) return check_one_of(type);
  if (!is_of_kind(json(), type) || !is_in_range(json(), type, terms_->max_choices)) {
    const std::string expected = expected_words(type, terms_->max_choices);
    type.is_part_of_api ? refuse_unsupported(expected) : refuse(expected);
  }
  switch (type.kind) {
    case FieldKind::text:
      return check_size(text().size(), type, "bytes");
    case FieldKind::array:
    case FieldKind::tuple:
      return check_items(type);
    case FieldKind::object:
      return check_members(type);
    default:
      return;
  }
}

void FieldValue::check_size(size_t size, const FieldType& type, std::string_view unit) const {
  const auto min = static_cast<uint64_t>(type.min);
  if (size >= min && size <= type.max) return;
  if (type.is_part_of_api) refuse_unsupported("an empty one");
  if (type.kind == FieldKind::tuple) refuse(type.expected);
  if (min == 1 && size == 0 && unit == "bytes") refuse("some text");
  if (min == 1 && size == 0) {
    throw invalid_field(path(), "an empty array, expected at least one item");
  }
  throw RequestError(
      path(), ErrorReason::invalid_value,
      size < min ? fmt::format("{}: {} {}, expected {}", path(), size, unit, min)
                 : fmt::format("{}: {} {}, expected at most {}", path(), size, unit, type.max));
}

void FieldValue::check_items(const FieldType& type) const {
  const Json::Array& array = at_.array();
  check_size(array.size(), type, "items");
  for (size_t i = 0; i < array.size(); ++i) {
    const FieldType* wanted = type.kind == FieldKind::tuple ? &type.parts[i] : type.item;
    // Saves making the paths of a million token ids.
    if (wanted == nullptr || is_plain_match(array[i], *wanted)) continue;
    item(i).check(*wanted);
  }
}

void FieldValue::check_members(const FieldType& type) const {
  check_size(object().size(), type, "entries");
  if (type.item == nullptr) return;
  for (const auto& [key, value] : object()) {
    const FieldValue member(at_.below(key, value), *terms_);
    if (type.keys_are_ids && !is_token_id_text(key)) member.refuse("a token id as its key");
    member.check(*type.item);
  }
}

void FieldValue::check_one_of(const FieldType& type) const {
  const FieldType* only_array = nullptr;
  std::string items;  // of the array that it may be
  for (const FieldType& part : type.parts) {
    if (is_like(json(), part)) return check(part);
    if (part.kind != FieldKind::array || part.item == nullptr) continue;
    only_array = items.empty() ? &part : nullptr;
    if (!items.empty()) items += " or ";
    items += expected_words(*part.item, 0);
  }
  if (at_.is_array() && only_array != nullptr) return check(*only_array);
  if (at_.is_array() && !items.empty()) item(0).refuse(items);
  const std::string expected = expected_words(type, terms_->max_choices);
  type.is_part_of_api ? refuse_unsupported(expected) : refuse(expected);
}

bool FieldValue::boolean() const { return at_.boolean(); }

int64_t FieldValue::integer() const { return static_cast<int64_t>(seed()); }

float FieldValue::number() const { return static_cast<float>(at_.number()); }

uint64_t FieldValue::seed() const {
  const auto value = whole_number(json());
  if (!value) refuse("an integer");
  return value->bits;
}

const std::string& FieldValue::text() const { return at_.string(); }

const Json::Object& FieldValue::object() const { return at_.object(); }

FieldValue FieldValue::item(size_t index) const { return {at_.item(index), *terms_}; }

std::vector<FieldValue> FieldValue::items() const {
  const size_t size = at_.array().size();
  std::vector<FieldValue> items;
  items.reserve(size);
  for (size_t i = 0; i < size; ++i) items.push_back(item(i));
  return items;
}

std::vector<std::string> FieldValue::texts() const {
  std::vector<std::string> texts;
  for (const Json& text : at_.array()) texts.push_back(*text.string());
  return texts;
}

std::vector<int32_t> FieldValue::token_ids() const {
  const Json::Array& array = at_.array();
  std::vector<int32_t> ids;
  ids.reserve(array.size());
  for (const Json& id : array) ids.push_back(static_cast<int32_t>(*id.integer()));
  return ids;
}

}  // namespace paceline
