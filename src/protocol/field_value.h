// FieldValue is a value of a request with its path, which every complaint about it names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace paceline {

struct NumberRange {
  double min = 0;
  double max = 0;
  bool above_min = false;  // the minimum itself is not allowed
};

// The JSON must outlive it. Everything but path() and json() throws RequestError when the value
// isn't what is asked for: "PATH: found VALUE, expected ...".
class FieldValue {
 public:
  FieldValue(const Json& json, std::string path) : json_(&json), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  const Json& json() const { return *json_; }

  bool boolean() const;
  int64_t integer(int64_t min, int64_t max) const;
  double number(NumberRange range) const;
  // What may be a uint64 or an int64, whose bits are then taken: clients send both.
  uint64_t seed() const;
  const std::string& text() const;
  const Json::Object& object() const;
  // The elements of an array, with their paths.
  std::vector<FieldValue> items(size_t max_items) const;
  // An array of token ids; whether they are in the vocabulary is not known here.
  std::vector<int32_t> token_ids(size_t max_ids) const;
  int32_t token_id() const;

  // "PATH: found VALUE, expected EXPECTED"
  [[noreturn]] void refuse(std::string_view expected) const;
  // "PATH: found VALUE, only ONLY is supported"
  [[noreturn]] void refuse_unsupported(std::string_view only) const;

  // For fields of which only the value that changes nothing is honoured so far.
  void only(bool value) const;
  void only(int64_t value) const;
  void only_empty() const;  // an array or an object

 private:
  const Json* json_;
  std::string path_;
};

}  // namespace paceline
