// Json is a parsed JSON document as a tree of values: objects keep their order, keys are unique.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "paceline/error.h"

namespace paceline {

class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;

  Json() = default;  // null
  Json(bool value) : value_(value) {}
  Json(int64_t value) : value_(value) {}
  Json(uint64_t value) : value_(value) {}
  Json(double value) : value_(value) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(Array value) : value_(std::move(value)) {}
  Json(Object value) : value_(std::move(value)) {}

  bool is_null() const { return holds<std::monostate>(); }
  bool is_bool() const { return holds<bool>(); }
  bool is_integer() const { return holds<int64_t>() || holds<uint64_t>(); }
  bool is_number() const { return is_integer() || holds<double>(); }
  bool is_negative() const;  // a number below zero
  bool is_string() const { return holds<std::string>(); }
  bool is_array() const { return holds<Array>(); }
  bool is_object() const { return holds<Object>(); }

  // The kind of the value: "a string", "an object", ...
  std::string_view kind() const;

  // The value in the asked type; nothing when it is of another.
  std::optional<bool> boolean() const;
  std::optional<int64_t> integer() const;  // integral doubles such as 4096.0 count
  std::optional<uint64_t> unsigned_integer() const;
  std::optional<double> number() const;
  const std::string* string() const { return std::get_if<std::string>(&value_); }
  const Array* array() const { return std::get_if<Array>(&value_); }
  const Object* object() const { return std::get_if<Object>(&value_); }

  // What a JsonCursor at this value, named `where`, reads: Error invalid "WHERE: found VALUE,
  // expected ..." when it is of another type.
  bool as_bool(std::string_view where) const;
  int64_t as_int(std::string_view where) const;
  uint64_t as_uint(std::string_view where) const;
  double as_double(std::string_view where) const;
  const std::string& as_string(std::string_view where) const;
  const Array& as_array(std::string_view where) const;
  const Object& as_object(std::string_view where) const;

  // The member of an object; nullptr when this is no object or has no such key.
  const Json* find(std::string_view key) const;
  // As find, but a member whose value is null counts as absent too.
  const Json* find_value(std::string_view key) const;
  const std::string* find_text(std::string_view key) const;  // nullptr for one of another type, too

 private:
  template <class T>
  bool holds() const {
    return std::holds_alternative<T>(value_);
  }

  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, Array, Object> value_;
};

// Parses strict JSON (UTF-8, no trailing bytes, depth at most 64, no duplicate keys).
// Throws Error "WHERE: ..." with `code` on anything else.
Json parse_json(std::string_view text, std::string_view where, ErrorCode code = ErrorCode::invalid);
// The same for one line of JSON Lines, whose number is in `where`: errors add only the column.
Json parse_json_line(std::string_view line, std::string_view where);
// The object that the text is; nothing where it isn't one.
std::optional<Json> parse_object(std::string_view text);

}  // namespace paceline
