#include "base/json.h"

#include <fmt/format.h>

#include <cmath>

#include "base/json_cursor.h"
#include "base/json_document.h"

namespace paceline {
namespace {

Json tree_of(const DocumentNode& node) {
  if (node.is_object()) {
    Json::Object object;
    for (const auto& [key, value] : node.object()) {
      object.emplace_back(std::string(key), tree_of(value));
    }
    return Json(std::move(object));
  }
  if (node.is_array()) {
    Json::Array array;
    for (const DocumentNode& item : node.array()) array.push_back(tree_of(item));
    return Json(std::move(array));
  }
  if (node.is_string()) return Json(std::string(node.string()));
  if (const auto value = node.integer()) return Json(*value);
  if (const auto value = node.unsigned_integer()) return Json(*value);
  if (node.is_number()) return Json(node.number());
  return node.is_bool() ? Json(node.boolean()) : Json();
}

}  // namespace

std::string_view Json::kind() const {
  static constexpr std::string_view kNames[] = {"null",     "a boolean", "an integer", "an integer",
                                                "a number", "a string",  "an array",   "an object"};
  return kNames[value_.index()];
}

std::optional<bool> Json::boolean() const {
  const auto* value = std::get_if<bool>(&value_);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<int64_t> Json::integer() const {
  if (const auto* value = std::get_if<int64_t>(&value_)) return *value;
  constexpr double kExactLimit = 9007199254740992.0;  // 2^53
  const auto* value = std::get_if<double>(&value_);
  if (value == nullptr || std::trunc(*value) != *value || std::abs(*value) > kExactLimit) {
    return std::nullopt;
  }
  return static_cast<int64_t>(*value);
}

std::optional<uint64_t> Json::unsigned_integer() const {
  if (const auto* value = std::get_if<uint64_t>(&value_)) return *value;
  const auto value = integer();
  if (!value || *value < 0) return std::nullopt;
  return static_cast<uint64_t>(*value);
}

std::optional<double> Json::number() const {
  if (const auto* value = std::get_if<double>(&value_)) return *value;
  if (const auto* value = std::get_if<int64_t>(&value_)) return static_cast<double>(*value);
  if (const auto* value = std::get_if<uint64_t>(&value_)) return static_cast<double>(*value);
  return std::nullopt;
}

bool Json::is_negative() const { return is_number() && *number() < 0; }

bool Json::as_bool(std::string_view where) const {
  return JsonCursor(*this, std::string(where)).boolean();
}
int64_t Json::as_int(std::string_view where) const {
  return JsonCursor(*this, std::string(where)).integer();
}
uint64_t Json::as_uint(std::string_view where) const {
  return JsonCursor(*this, std::string(where)).unsigned_integer();
}
double Json::as_double(std::string_view where) const {
  return JsonCursor(*this, std::string(where)).number();
}
const std::string& Json::as_string(std::string_view where) const {
  return JsonCursor(*this, std::string(where)).string();
}
const Json::Array& Json::as_array(std::string_view where) const {
  return JsonCursor(*this, std::string(where)).array();
}
const Json::Object& Json::as_object(std::string_view where) const {
  return JsonCursor(*this, std::string(where)).object();
}

const Json* Json::find(std::string_view key) const {
  const auto* object = std::get_if<Object>(&value_);
  if (object == nullptr) return nullptr;
  for (const auto& [name, value] : *object) {
    if (name == key) return &value;
  }
  return nullptr;
}

const Json* Json::find_value(std::string_view key) const {
  const Json* value = find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

const std::string* Json::find_text(std::string_view key) const {
  const Json* const found = find(key);
  return found == nullptr ? nullptr : found->string();
}

Json parse_json(std::string_view text, std::string_view where, ErrorCode code) {
  const JsonDocument document(std::string(text), where, code);
  return tree_of(document.root().node());
}

Json parse_json_line(std::string_view line, std::string_view where) {
  const JsonDocument document(std::string(line), where, ErrorCode::invalid,
                              HugeIntegers::as_doubles, JsonText::line);
  return tree_of(document.root().node());
}

std::optional<Json> parse_object(std::string_view text) {
  try {
    if (Json json = parse_json(text, ""); json.is_object()) return json;
  } catch (const Error&) {
  }
  return std::nullopt;
}

}  // namespace paceline
