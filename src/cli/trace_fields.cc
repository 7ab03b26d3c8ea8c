#include "cli/trace_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/suggest.h"
#include "paceline/error.h"

namespace paceline {
namespace {

int64_t integer_within(const Json& value, IntegerRange range, std::string_view place) {
  const int64_t integer = value.as_int(place);
  if (integer < range.min) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: found {}, expected at least {}", place, integer, range.min));
  }
  if (integer > range.max) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: found {}, expected at most {}", place, integer, range.max));
  }
  return integer;
}

std::vector<int32_t> ids_of(const Json::Array& array, std::string_view place) {
  std::vector<int32_t> ids;
  for (const Json& value : array) {
    ids.push_back(static_cast<int32_t>(integer_within(value, kAnyTokenId, place)));
  }
  return ids;
}

}  // namespace

int64_t TraceTuple::integer(IntegerRange range) {
  return integer_within(values_.at(next_++), range, place_);
}

int32_t TraceTuple::token_id() { return static_cast<int32_t>(integer(kAnyTokenId)); }

double TraceTuple::number() { return values_.at(next_++).as_double(place_); }

const std::string& TraceTuple::text() { return values_.at(next_++).as_string(place_); }

TraceFields::TraceFields(const Json& line, std::string where)
    : line_(line), where_(std::move(where)) {
  line_.as_object(where_);
}

std::string TraceFields::place(std::string_view name) const {
  return fmt::format("{}: {}", where_, name);
}

const Json& TraceFields::take(std::string_view name) {
  const Json* value = line_.find(name);
  if (value == nullptr) {
    throw Error(ErrorCode::invalid, fmt::format("{}: found no {}", where_, name));
  }
  taken_.push_back(name);
  return *value;
}

const Json::Array& TraceFields::array(std::string_view name) {
  return take(name).as_array(place(name));
}

int64_t TraceFields::integer(std::string_view name, IntegerRange range) {
  return integer_within(take(name), range, place(name));
}

uint64_t TraceFields::seed(std::string_view name) { return take(name).as_uint(place(name)); }

double TraceFields::number(std::string_view name) { return take(name).as_double(place(name)); }

bool TraceFields::boolean(std::string_view name) { return take(name).as_bool(place(name)); }

const std::string& TraceFields::text(std::string_view name) {
  return take(name).as_string(place(name));
}

std::vector<int64_t> TraceFields::integers(std::string_view name, IntegerRange range) {
  const std::string here = place(name);
  std::vector<int64_t> values;
  for (const Json& value : array(name)) values.push_back(integer_within(value, range, here));
  return values;
}

std::vector<int32_t> TraceFields::token_ids(std::string_view name) {
  return ids_of(array(name), place(name));
}

std::vector<std::vector<int32_t>> TraceFields::token_id_lists(std::string_view name) {
  const std::string here = place(name);
  std::vector<std::vector<int32_t>> lists;
  for (const Json& list : array(name)) lists.push_back(ids_of(list.as_array(here), here));
  return lists;
}

std::vector<std::string> TraceFields::texts(std::string_view name) {
  const std::string here = place(name);
  std::vector<std::string> values;
  for (const Json& value : array(name)) values.push_back(value.as_string(here));
  return values;
}

void TraceFields::objects(std::string_view name,
                          const std::function<void(TraceFields& object)>& read) {
  size_t index = 0;
  for (const Json& value : array(name)) {
    TraceFields object(value, fmt::format("{}[{}]", place(name), index++));
    read(object);
    object.expect_no_more();
  }
}

void TraceFields::tuples(std::string_view name, size_t size,
                         const std::function<void(TraceTuple& tuple)>& read) {
  const std::string here = place(name);
  for (const Json& value : array(name)) {
    const Json::Array& values = value.as_array(here);
    if (values.size() != size) {
      throw Error(ErrorCode::invalid, fmt::format("{}: found an array of {} values, expected {}",
                                                  here, values.size(), size));
    }
    TraceTuple tuple(values, here);
    read(tuple);
  }
}

void TraceFields::expect_no_more() const {
  for (const auto& [key, value] : line_.as_object(where_)) {
    if (std::find(taken_.begin(), taken_.end(), key) == taken_.end()) {
      throw Error(ErrorCode::invalid,
                  fmt::format("{}: unknown field {}{}", where_, key, did_you_mean(key, taken_)));
    }
  }
}

}  // namespace paceline
