// FieldValue is a value of a request: a JsonCursor with the terms, checked by a FieldType.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/json_cursor.h"
#include "protocol/field_type.h"

namespace paceline {

// A server's own limits of requests.
struct RequestTerms {
  uint64_t max_choices = 128;  // the greatest n
  // Prompts have what clients count in them (protocol/client_counters.h).
  bool keep_client_counters = false;
  // Called with the path of each unknown field, which is then ignored; none: unknown fields are
  // refused.
  std::function<void(const std::string& path)> on_unknown_field = {};
};

// The JSON and the terms must outlive it. Everything but at(), path(), json() and terms() throws
// RequestError when the value has another type: "PATH: found VALUE, expected ...".
class FieldValue {
 public:
  FieldValue(JsonCursor at, const RequestTerms& terms) : at_(std::move(at)), terms_(&terms) {}

  const JsonCursor& at() const { return at_; }
  const std::string& path() const { return at_.path(); }
  const Json& json() const { return at_.node().json(); }
  const RequestTerms& terms() const { return *terms_; }

  // Throws unless the value matches `type`. Readers check the members of objects, and rules between
  // fields.
  void check(const FieldType& type) const;

  // Of a value that was checked.
  bool boolean() const;
  int64_t integer() const;
  int32_t small_integer() const { return static_cast<int32_t>(integer()); }
  float number() const;
  // A uint64, or the bits of an int64: clients send both.
  uint64_t seed() const;
  const std::string& text() const;
  const Json::Object& object() const;
  // Of an object that has it.
  FieldValue member(std::string_view name) const { return {at_.at(name), *terms_}; }
  // The elements of an array, with their paths.
  std::vector<FieldValue> items() const;
  std::vector<std::string> texts() const;
  // Of a text that is one of these words, in the order of the enumerators.
  template <class Enum>
  Enum one_of(std::span<const std::string_view> words) const {
    return static_cast<Enum>(std::find(words.begin(), words.end(), text()) - words.begin());
  }
  std::vector<int32_t> token_ids() const;

  // Into a member of this type, or an optional one.
  template <class T>
  void copy_to(T& target) const;

  // "PATH: found VALUE, expected EXPECTED"
  [[noreturn]] void refuse(std::string_view expected) const;
  // "PATH: found VALUE, only ONLY is supported"
  [[noreturn]] void refuse_unsupported(std::string_view only) const;

 private:
  FieldValue item(size_t index) const;
  void check_items(const FieldType& type) const;
  void check_members(const FieldType& type) const;
  void check_one_of(const FieldType& type) const;
  void check_size(size_t size, const FieldType& type, std::string_view unit) const;

  JsonCursor at_;
  const RequestTerms* terms_;
};

template <class T>
void FieldValue::copy_to(T& target) const {
  using std::is_assignable_v, std::is_same_v;
  if constexpr (is_same_v<T, Json>) {
    target = json();
  } else if constexpr (is_assignable_v<T&, FieldValue>) {
    target = *this;
  } else if constexpr (is_assignable_v<T&, std::string>) {
    target = text();
  } else if constexpr (is_assignable_v<T&, std::vector<std::string>>) {
    target = texts();
  } else if constexpr (is_assignable_v<T&, std::vector<int32_t>>) {
    target = token_ids();
  } else if constexpr (is_same_v<T, bool> || is_same_v<T, std::optional<bool>>) {
    target = boolean();
  } else if constexpr (is_same_v<T, float> || is_same_v<T, std::optional<float>>) {
    target = number();
  } else if constexpr (is_same_v<T, int32_t> || is_same_v<T, std::optional<int32_t>>) {
    target = small_integer();
  } else {
    target = integer();
  }
}

}  // namespace paceline
