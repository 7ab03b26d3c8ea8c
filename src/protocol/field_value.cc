#include "protocol/field_value.h"

#include <fmt/format.h>

#include <cmath>

#include "base/json_writer.h"
#include "base/utf8.h"
#include "protocol/api_error.h"
#include "protocol/field_match.h"

namespace paceline {
namespace {

// Scalars as they stand, strings shortened, the rest by kind.
std::string shown(const Json& json) {
  constexpr size_t kMaxShown = 60;
  if (json.is_array() || json.is_object()) return std::string(json.kind());
  if (!json.is_string()) return to_json(json);
  const std::string& text = json.as_string("");
  if (text.size() <= kMaxShown) return json_quote(text);
  std::string_view begin = std::string_view(text).substr(0, kMaxShown);
  begin.remove_suffix(incomplete_utf8_suffix(begin));
  return json_quote(begin) + "...";
}

}  // namespace

void FieldValue::refuse(std::string_view expected) const {
  throw RequestError(path_, "invalid_value",
                     fmt::format("{}: found {}, expected {}", path_, shown(*json_), expected));
}

void FieldValue::refuse_unsupported(std::string_view only) const {
  throw RequestError(path_, "unsupported_parameter",
                     fmt::format("{}: found {}, only {} is supported", path_, shown(*json_), only));
}

void FieldValue::check(const FieldType& type) const {
  if (type.kind == FieldKind::one_of) return check_one_of(type);
  if (!is_of_kind(*json_, type) || !is_in_range(*json_, type, terms_->max_choices)) {
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
  if (type.kind == FieldKind::tuple) refuse(type.said);
  if (min == 1 && size == 0) refuse(unit == "bytes" ? "some text" : "at least one item");
  throw RequestError(
      path_, "invalid_value",
      size < min ? fmt::format("{}: {} {}, expected {}", path_, size, unit, min)
                 : fmt::format("{}: {} {}, expected at most {}", path_, size, unit, type.max));
}

void FieldValue::check_items(const FieldType& type) const {
  const Json::Array& array = json_->as_array(path_);
  check_size(array.size(), type, "items");
  for (size_t i = 0; i < array.size(); ++i) {
    const FieldType* wanted = type.kind == FieldKind::tuple ? &type.parts[i] : type.item;
    // Paths of a million token ids are not made in vain.
    if (wanted == nullptr || is_plain_match(array[i], *wanted)) continue;
    item(i).check(*wanted);
  }
}

void FieldValue::check_members(const FieldType& type) const {
  check_size(object().size(), type, "entries");
  if (type.item == nullptr) return;
  for (const auto& [key, value] : object()) {
    const FieldValue member(value, path_ + "." + key, *terms_);
    if (type.keys_are_ids && !is_token_id_text(key)) member.refuse("a token id as its key");
    member.check(*type.item);
  }
}

void FieldValue::check_one_of(const FieldType& type) const {
  const FieldType* only_array = nullptr;
  std::string items;  // of the array that it may be
  for (const FieldType& part : type.parts) {
    if (is_like(*json_, part)) return check(part);
    if (part.kind != FieldKind::array) continue;
    only_array = items.empty() ? &part : nullptr;
    if (!items.empty()) items += " or ";
    items += expected_words(*part.item, 0);
  }
  if (json_->is_array() && only_array != nullptr) return check(*only_array);
  if (json_->is_array() && !items.empty()) item(0).refuse(items);
  const std::string expected = expected_words(type, terms_->max_choices);
  type.is_part_of_api ? refuse_unsupported(expected) : refuse(expected);
}

bool FieldValue::boolean() const { return json_->as_bool(path_); }

int64_t FieldValue::integer() const { return static_cast<int64_t>(seed()); }

float FieldValue::number() const { return static_cast<float>(json_->as_double(path_)); }

uint64_t FieldValue::seed() const {
  const auto value = whole_number(*json_);
  if (!value) refuse("an integer");
  return value->bits;
}

bool FieldValue::is_negative() const {
  const auto value = whole_number(*json_);
  return value && value->is_negative;
}

const std::string& FieldValue::text() const { return json_->as_string(path_); }

const Json::Object& FieldValue::object() const { return json_->as_object(path_); }

FieldValue FieldValue::item(size_t index) const {
  return {json_->as_array(path_)[index], fmt::format("{}[{}]", path_, index), *terms_};
}

std::vector<FieldValue> FieldValue::items() const {
  const size_t size = json_->as_array(path_).size();
  std::vector<FieldValue> items;
  items.reserve(size);
  for (size_t i = 0; i < size; ++i) items.push_back(item(i));
  return items;
}

std::vector<int32_t> FieldValue::token_ids() const {
  const Json::Array& array = json_->as_array(path_);
  std::vector<int32_t> ids;
  ids.reserve(array.size());
  for (const Json& id : array) ids.push_back(static_cast<int32_t>(id.as_int(path_)));
  return ids;
}

}  // namespace paceline
