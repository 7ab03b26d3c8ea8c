// JsonWriter appends JSON to a string: no tree, no copies, always valid UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

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

  // key(name) followed by a value of the fitting kind.
  template <class T>
  JsonWriter& member(std::string_view name, const T& value) {
    key(name);
    if constexpr (std::is_same_v<T, bool>) {
      return boolean(value);
    } else if constexpr (std::is_floating_point_v<T>) {
      return number(value);
    } else if constexpr (std::is_unsigned_v<T>) {
      return unsigned_integer(value);
    } else if constexpr (std::is_integral_v<T>) {
      return integer(value);
    } else {
      return string(value);
    }
  }

 private:
  void before_value();

  std::string& out_;
  bool needs_comma_ = false;
};

// `text` quoted and escaped as one JSON string.
std::string json_quote(std::string_view text);

// `value` as JSON on one line.
std::string to_json(const Json& value);

}  // namespace paceline
