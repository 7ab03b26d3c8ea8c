#include "cli/trace_fields.h"

#include <fmt/format.h>

namespace paceline {
namespace {

std::vector<int32_t> ids_of(const JsonCursor& array) {
  std::vector<int32_t> ids;
  ids.reserve(array.num_items());
  for (const Json& id : array.array()) {
    const auto value = id.integer();
    if (!value || !kAnyTokenId.contains(*value)) array.below(ids.size(), id).integer(kAnyTokenId);
    ids.push_back(static_cast<int32_t>(*value));
  }
  return ids;
}

}  // namespace

JsonCursor TraceFields::take(std::string_view name) {
  taken_.push_back(name);
  return object_.at(name);
}

int64_t TraceFields::integer(std::string_view name, const NumberRange& range) {
  return take(name).integer(range);
}

uint64_t TraceFields::seed(std::string_view name) { return take(name).unsigned_integer(); }

double TraceFields::number(std::string_view name) { return take(name).number(); }

bool TraceFields::boolean(std::string_view name) { return take(name).boolean(); }

const std::string& TraceFields::text(std::string_view name) { return take(name).string(); }

std::vector<int64_t> TraceFields::integers(std::string_view name, const NumberRange& range) {
  std::vector<int64_t> values;
  for (const JsonCursor& value : take(name).items()) values.push_back(value.integer(range));
  return values;
}

std::vector<int32_t> TraceFields::token_ids(std::string_view name) { return ids_of(take(name)); }

std::vector<std::vector<int32_t>> TraceFields::token_id_lists(std::string_view name) {
  std::vector<std::vector<int32_t>> lists;
  for (const JsonCursor& list : take(name).items()) lists.push_back(ids_of(list));
  return lists;
}

std::vector<std::string> TraceFields::texts(std::string_view name) {
  std::vector<std::string> values;
  for (const JsonCursor& value : take(name).items()) values.push_back(value.string());
  return values;
}

void TraceFields::objects(std::string_view name,
                          const std::function<void(TraceFields& object)>& read) {
  for (const JsonCursor& value : take(name).items()) {
    TraceFields object(value);
    read(object);
    object.expect_no_more();
  }
}

void TraceFields::tuples(std::string_view name, size_t size,
                         const std::function<void(TraceTuple& tuple)>& read) {
  for (const JsonCursor& value : take(name).items()) {
    auto values = value.items();
    if (values.size() != size) {
      value.fail(
          found_instead(fmt::format("an array of {} values", values.size()), std::to_string(size)));
    }
    TraceTuple tuple(std::move(values));
    read(tuple);
  }
}

}  // namespace paceline
