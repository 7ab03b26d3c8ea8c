// FieldValue is a value of a request with its path, which every complaint about it names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "protocol/field_type.h"
#include "protocol/request_terms.h"

namespace paceline {

// The JSON and the terms must outlive it. Everything but path(), json() and terms() throws
// RequestError when the value isn't what is asked for: "PATH: found VALUE, expected ...".
class FieldValue {
 public:
  FieldValue(const Json& json, std::string path, const RequestTerms& terms)
      : json_(&json), terms_(&terms), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  const Json& json() const { return *json_; }
  const RequestTerms& terms() const { return *terms_; }

  // Throws unless the value is one that `type` describes. What it leaves to readers: the members of
  // objects, and rules between fields.
  void check(const FieldType& type) const;

  // Of a value that was checked.
  bool boolean() const;
  int64_t integer() const;
  int32_t small_integer() const { return static_cast<int32_t>(integer()); }
  float number() const;
  // What may be a uint64 or an int64, whose bits are then taken: clients send both.
  uint64_t seed() const;
  bool is_negative() const;  // of an integer
  const std::string& text() const;
  const Json::Object& object() const;
  // The elements of an array, with their paths.
  std::vector<FieldValue> items() const;
  std::vector<int32_t> token_ids() const;

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

  const Json* json_;
  const RequestTerms* terms_;
  std::string path_;
};

}  // namespace paceline
