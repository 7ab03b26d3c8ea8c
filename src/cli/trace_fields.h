// TraceFields reads one line of a trace as engine/trace_lines.h visits it: no field may be missing,
// none may be left over.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/json_cursor.h"
#include "engine/trace_lines.h"

namespace paceline {

// Reads the values of one array such as [7,32,88].
class TraceParts {
 public:
  explicit TraceParts(std::vector<JsonCursor> values) : values_(std::move(values)) {}

  template <class T>
  void operator()(T& value, const NumberRange& range) {
    value = static_cast<T>(values_.at(next_++).integer(range));
  }
  void operator()(float& value) { value = static_cast<float>(values_.at(next_++).number()); }
  void operator()(FinishReason& reason);

 private:
  std::vector<JsonCursor> values_;
  size_t next_ = 0;
};

// Whatever isn't as the lists say is an error of the cursor: "WHERE: FIELD: ...".
class TraceFields {
 public:
  // Of a line, or of an object in it.
  explicit TraceFields(JsonCursor object) : object_(std::move(object)) {}

  const std::string& text(std::string_view name) { return take(name).string(); }

  void operator()(std::string_view name, std::string& value) { value = text(name); }
  void operator()(std::string_view name, bool& value) { value = take(name).boolean(); }
  void operator()(std::string_view name, uint64_t& value) { value = take(name).unsigned_integer(); }
  void operator()(std::string_view name, int64_t& value, const NumberRange& range) {
    value = take(name).integer(range);
  }
  void operator()(std::string_view name, std::vector<int64_t>& values, const NumberRange& range);
  void operator()(std::string_view name, std::vector<TokenId>& ids);
  void operator()(std::string_view name, std::vector<std::vector<TokenId>>& lists);
  void operator()(std::string_view name, std::vector<std::string>& texts);
  template <class T>
  void operator()(std::string_view name, std::vector<T>& all) {
    for (const JsonCursor& value : take(name).items()) {
      TraceParts visit(items_of(value, num_parts<T>()));
      visit_parts(all.emplace_back(), visit);
    }
  }
  template <class T, class... Range>
  void optional(std::string_view name, T& value, const std::type_identity_t<T>&,
                const Range&... range) {
    if (object_.contains(name)) (*this)(name, value, range...);
  }
  template <class T>
  void objects(std::string_view name, std::vector<T>& all) {
    for (const JsonCursor& value : take(name).items()) {
      TraceFields fields(value);
      visit_fields(all.emplace_back(), fields);
      fields.expect_no_more();
    }
  }
  // Traces of older versions lack the numbers that came later.
  void number(const SamplingNumber& number, int32_t& value);
  void number(const SamplingNumber& number, float& value);

  // Call it last: Error invalid for a field that wasn't read.
  void expect_no_more() const { object_.expect_keys(taken_); }

  // "WHERE: NAME".
  std::string place(std::string_view name) const { return object_.name_of(name); }

 private:
  struct PartCounter {
    template <class... T>
    void operator()(const T&...) {
      ++count;
    }
    size_t count = 0;
  };
  template <class T>
  static size_t num_parts() {
    PartCounter counter;
    T parts;
    visit_parts(parts, counter);
    return counter.count;
  }
  static std::vector<JsonCursor> items_of(const JsonCursor& array, size_t expected);

  JsonCursor take(std::string_view name);

  JsonCursor object_;
  std::vector<std::string_view> taken_;
};

}  // namespace paceline
