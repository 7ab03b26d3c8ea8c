// JsonWriter appends JSON to a string: no tree, no copies, always valid UTF-8.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "base/json.h"

namespace paceline {

class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);

  JsonWriter& null();
  JsonWriter& boolean(bool value);
  JsonWriter& string(std::string_view text);  // ill-formed UTF-8 becomes U+FFFD
  JsonWriter& integer(int64_t value);
  JsonWriter& unsigned_integer(uint64_t value);
  JsonWriter& number(double value);  // shortest form that reads back; NaN and infinities are null
  JsonWriter& number(float value);
  JsonWriter& raw(std::string_view json);  // already JSON
  // Writes a parsed value; parsing the output gives it back: a double stays a double (2.0, not 2).
  JsonWriter& tree(const Json& value);

  // A value of the fitting kind: null for an optional one that isn't there, an array of a range.
  template <class T>
  JsonWriter& value(const T& value);
  template <class T>
  JsonWriter& value(const std::optional<T>& value) {
    return value ? this->value(*value) : null();
  }
  template <class... Ts>
  JsonWriter& value(const std::variant<Ts...>& value) {
    return std::visit([this](const auto& one) -> JsonWriter& { return this->value(one); }, value);
  }
  // key(name) followed by that.
  template <class T>
  JsonWriter& member(std::string_view name, const T& value) {
    return key(name).value(value);
  }

 private:
  void before_value();

  std::string& out_;
  bool needs_comma_ = false;
};

template <class T>
JsonWriter& JsonWriter::value(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return boolean(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return number(value);
  } else if constexpr (std::is_unsigned_v<T>) {
    return unsigned_integer(value);
  } else if constexpr (std::is_integral_v<T>) {
    return integer(value);
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return string(value);
  } else {
    begin_array();
    for (const auto& one : value) this->value(one);
    return end_array();
  }
}

// An object whose members `write` writes.
template <class Write>
std::string object_json(const Write& write) {
  std::string json;
  JsonWriter writer(json);
  writer.begin_object();
  write(writer);
  writer.end_object();
  return json;
}

// `text` quoted and escaped as one JSON string.
std::string json_quote(std::string_view text);

// `value` as JSON on one line.
std::string to_json(const Json& value);

}  // namespace paceline
