// TraceFields takes one line of a trace apart: no field may be missing, none may be left over.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_cursor.h"

namespace paceline {

constexpr NumberRange kAnyInteger{};
constexpr NumberRange kNotNegative{.min = 0};
// Far more than there can be, and sums of them stay within 64 bits.
constexpr NumberRange kCount{.min = 0, .max = 1'000'000'000'000};
constexpr NumberRange kPositive{.min = 1, .max = kCount.max};
constexpr NumberRange kClockTime{.min = 0, .max = 1'000'000'000'000'000};  // microseconds
constexpr NumberRange kAnyTokenId{.min = 0, .max = std::numeric_limits<int32_t>::max()};

// The values of one array such as [7,32,88], taken in order.
class TraceTuple {
 public:
  explicit TraceTuple(std::vector<JsonCursor> values) : values_(std::move(values)) {}

  int64_t integer(const NumberRange& range) { return values_.at(next_++).integer(range); }
  int32_t token_id() { return static_cast<int32_t>(integer(kAnyTokenId)); }
  double number() { return values_.at(next_++).number(); }
  const std::string& text() { return values_.at(next_++).string(); }

 private:
  std::vector<JsonCursor> values_;
  size_t next_ = 0;
};

// Whatever isn't as asked for is an error of the cursor: "WHERE: FIELD: ...".
class TraceFields {
 public:
  // Of a line, or of an object in it.
  explicit TraceFields(JsonCursor object) : object_(std::move(object)) {}

  bool has(std::string_view name) const { return object_.contains(name); }

  int64_t integer(std::string_view name, const NumberRange& range);
  uint64_t seed(std::string_view name);
  double number(std::string_view name);
  bool boolean(std::string_view name);
  const std::string& text(std::string_view name);
  std::vector<int64_t> integers(std::string_view name, const NumberRange& range);
  std::vector<int32_t> token_ids(std::string_view name);
  std::vector<std::vector<int32_t>> token_id_lists(std::string_view name);
  std::vector<std::string> texts(std::string_view name);
  // An array of objects, each of which `read` takes apart.
  void objects(std::string_view name, const std::function<void(TraceFields& object)>& read);
  // An array of arrays of `size` values, each of which `read` takes apart.
  void tuples(std::string_view name, size_t size,
              const std::function<void(TraceTuple& tuple)>& read);

  // Call it last: Error invalid for a field that nobody took.
  void expect_no_more() const { object_.expect_keys(taken_); }

  // "WHERE: NAME".
  std::string place(std::string_view name) const { return object_.name_of(name); }

 private:
  JsonCursor take(std::string_view name);

  JsonCursor object_;
  std::vector<std::string_view> taken_;
};

}  // namespace paceline
