// TraceFields takes one line of a trace apart: no field may be missing, none may be left over.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace paceline {

struct IntegerRange {
  int64_t min = std::numeric_limits<int64_t>::min();
  int64_t max = std::numeric_limits<int64_t>::max();
};

constexpr IntegerRange kAnyInteger{};
constexpr IntegerRange kNotNegative{.min = 0};
// Far more than there can be, and sums of them stay within 64 bits.
constexpr IntegerRange kCount{.min = 0, .max = 1'000'000'000'000};
constexpr IntegerRange kPositive{.min = 1, .max = kCount.max};
constexpr IntegerRange kClockTime{.min = 0, .max = 1'000'000'000'000'000};  // microseconds
constexpr IntegerRange kAnyTokenId{.min = 0, .max = std::numeric_limits<int32_t>::max()};

// The values of one array such as [7,32,88], taken in order.
class TraceTuple {
 public:
  // Both must outlive this.
  TraceTuple(const Json::Array& values, const std::string& place)
      : values_(values), place_(place) {}

  int64_t integer(IntegerRange range);
  int32_t token_id();
  double number();
  const std::string& text();

 private:
  const Json::Array& values_;
  const std::string& place_;
  size_t next_ = 0;
};

// Whatever isn't as asked for throws Error invalid "WHERE: FIELD: ...".
class TraceFields {
 public:
  // `line` must outlive this; Error invalid when it is no object.
  TraceFields(const Json& line, std::string where);

  // Whether the line has it.
  bool has(std::string_view name) const { return line_.find(name) != nullptr; }

  int64_t integer(std::string_view name, IntegerRange range);
  uint64_t seed(std::string_view name);
  double number(std::string_view name);
  bool boolean(std::string_view name);
  const std::string& text(std::string_view name);
  std::vector<int64_t> integers(std::string_view name, IntegerRange range);
  std::vector<int32_t> token_ids(std::string_view name);
  std::vector<std::vector<int32_t>> token_id_lists(std::string_view name);
  std::vector<std::string> texts(std::string_view name);
  // An array of objects, each of which `read` takes apart.
  void objects(std::string_view name, const std::function<void(TraceFields& object)>& read);
  // An array of arrays of `size` values, each of which `read` takes apart.
  void tuples(std::string_view name, size_t size,
              const std::function<void(TraceTuple& tuple)>& read);

  // Call it last: Error invalid for a field that nobody took.
  void expect_no_more() const;

  // "WHERE: NAME".
  std::string place(std::string_view name) const;

 private:
  const Json& take(std::string_view name);
  const Json::Array& array(std::string_view name);

  const Json& line_;
  std::string where_;
  std::vector<std::string_view> taken_;
};

}  // namespace paceline
