#include "protocol/field_value.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>

#include "base/json_writer.h"
#include "protocol/api_error.h"

namespace paceline {
namespace {

constexpr auto kMaxInt64 = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());

// An integer, or a double that is one exactly.
std::optional<int64_t> whole_number(const Json& json) {
  if (json.is_integer()) {
    if (json.is_negative()) return json.as_int("");
    const uint64_t value = json.as_uint("");
    return value <= kMaxInt64 ? std::optional(static_cast<int64_t>(value)) : std::nullopt;
  }
  constexpr double kExactLimit = 0x1p53;
  if (!json.is_number()) return std::nullopt;
  const double value = json.as_double("");
  if (std::trunc(value) != value || std::abs(value) > kExactLimit) return std::nullopt;
  return static_cast<int64_t>(value);
}

// Scalars as they stand, strings shortened, the rest by kind.
std::string shown(const Json& json) {
  constexpr size_t kMaxShown = 60;
  if (json.is_array() || json.is_object()) return std::string(json.kind());
  if (!json.is_string()) return to_json(json);
  const std::string& text = json.as_string("");
  if (text.size() <= kMaxShown) return json_quote(text);
  return json_quote(text.substr(0, kMaxShown)) + "...";
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

bool FieldValue::boolean() const {
  if (!json_->is_bool()) refuse("true or false");
  return json_->as_bool(path_);
}

int64_t FieldValue::integer(int64_t min, int64_t max) const {
  const auto value = whole_number(*json_);
  if (value && *value >= min && *value <= max) return *value;
  refuse(fmt::format("an integer from {} to {}", min, max));
}

double FieldValue::number(NumberRange range) const {
  if (json_->is_number()) {
    const double value = json_->as_double(path_);
    const bool above = range.above_min ? value > range.min : value >= range.min;
    if (above && value <= range.max) return value;
  }
  if (range.above_min) {
    refuse(fmt::format("a number above {} and at most {}", range.min, range.max));
  }
  refuse(fmt::format("a number from {} to {}", range.min, range.max));
}

uint64_t FieldValue::seed() const {
  if (json_->is_integer() && !json_->is_negative()) return json_->as_uint(path_);
  const auto value = whole_number(*json_);
  if (!value) refuse("an integer of 64 bits");
  return static_cast<uint64_t>(*value);
}

const std::string& FieldValue::text() const {
  if (!json_->is_string()) refuse("a string");
  return json_->as_string(path_);
}

const Json::Object& FieldValue::object() const {
  if (!json_->is_object()) refuse("an object");
  return json_->as_object(path_);
}

std::vector<FieldValue> FieldValue::items(size_t max_items) const {
  if (!json_->is_array()) refuse("an array");
  const Json::Array& array = json_->as_array(path_);
  if (array.size() > max_items) {
    throw RequestError(
        path_, "invalid_value",
        fmt::format("{}: {} items, expected at most {}", path_, array.size(), max_items));
  }
  std::vector<FieldValue> items;
  items.reserve(array.size());
  for (const Json& item : array) {
    items.emplace_back(item, fmt::format("{}[{}]", path_, items.size()));
  }
  return items;
}

std::vector<int32_t> FieldValue::token_ids(size_t max_ids) const {
  std::vector<int32_t> ids;
  for (const FieldValue& item : items(max_ids)) ids.push_back(item.token_id());
  return ids;
}

int32_t FieldValue::token_id() const {
  const auto value = whole_number(*json_);
  if (value && *value >= 0 && *value <= std::numeric_limits<int32_t>::max()) {
    return static_cast<int32_t>(*value);
  }
  refuse("a token id, an integer from 0 on");
}

void FieldValue::only(bool value) const {
  if (boolean() != value) refuse_unsupported(value ? "true" : "false");
}

void FieldValue::only(int64_t value) const {
  const auto found = whole_number(*json_);
  if (!found) refuse("an integer");
  if (*found != value) refuse_unsupported(std::to_string(value));
}

void FieldValue::only_empty() const {
  if (!json_->is_array() && !json_->is_object()) refuse("an array or an object");
  const bool is_empty =
      json_->is_array() ? json_->as_array(path_).empty() : json_->as_object(path_).empty();
  if (!is_empty) refuse_unsupported("an empty one");
}

}  // namespace paceline
