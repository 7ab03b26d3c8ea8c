// JsonField: a value of a tokenizer's file together with the name that errors call it by.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace paceline {

// Every accessor throws Error corrupt "FILE: PATH: ..." when the value has another type. The Json
// must outlive it.
class JsonField {
 public:
  // The root; `file` names the file, e.g. "tokenizer.json".
  JsonField(const Json& value, std::string_view file) : value_(&value), file_(file) {}
  // A value below the root, at `path`.
  JsonField(const Json& value, std::string_view file, std::string path)
      : value_(&value), file_(file), path_(std::move(path)) {}

  const std::string& string() const;
  bool boolean() const;
  int64_t integer() const;
  size_t num_items() const;
  JsonField item(size_t index) const;  // of an array
  bool is_string() const { return value_->is_string(); }
  bool is_array() const { return value_->is_array(); }
  bool is_object() const { return value_->is_object(); }
  bool is_null() const { return value_->is_null(); }

  JsonField member(std::string_view key) const;
  // Nothing when it is absent or null.
  std::optional<JsonField> find(std::string_view key) const;
  bool boolean_or(std::string_view key, bool otherwise) const;
  // Of an object, in their order.
  std::vector<std::pair<std::string, JsonField>> members() const;

  // "FILE: PATH"
  std::string name() const;
  [[noreturn]] void corrupt(std::string_view what) const;
  // Throws Error unsupported "FILE: WHAT isn't supported".
  [[noreturn]] void unsupported(std::string_view what) const;

 private:
  [[noreturn]] void mismatch(std::string_view expected) const;
  JsonField below(const Json& value, std::string_view step) const;

  const Json* value_;
  std::string file_;
  std::string path_;
};

// `text` in quotation marks, cut after some characters, for messages.
std::string in_quotes(std::string_view text);

}  // namespace paceline
