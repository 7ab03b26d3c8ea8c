#include "protocol/field_value.h"

#include <fmt/format.h>

#include "base/request_error.h"
#include "protocol/field_match.h"

namespace paceline {
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
