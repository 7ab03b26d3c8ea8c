#include "cli/trace_fields.h"

#include <fmt/format.h>

namespace paceline {
namespace {

std::vector<TokenId> ids_of(const JsonCursor& array) {
  std::vector<TokenId> ids;
  ids.reserve(array.num_items());
  for (const Json& id : array.array()) {
    const auto value = id.integer();
    if (!value || !kAnyTokenId.contains(*value)) array.below(ids.size(), id).integer(kAnyTokenId);
    ids.push_back(static_cast<TokenId>(*value));
  }
  return ids;
}

}  // namespace

void TraceParts::operator()(FinishReason& reason) {
  const JsonCursor& value = values_.at(next_++);
  const auto found = find_finish_reason(value.string());
  if (!found) value.mismatch("stop, length, cancelled or error");
  reason = *found;
}

JsonCursor TraceFields::take(std::string_view name) {
  taken_.push_back(name);
  return object_.at(name);
}

void TraceFields::operator()(std::string_view name, std::vector<int64_t>& values,
                             const NumberRange& range) {
  for (const JsonCursor& value : take(name).items()) values.push_back(value.integer(range));
}

void TraceFields::operator()(std::string_view name, std::vector<TokenId>& ids) {
  ids = ids_of(take(name));
}

void TraceFields::operator()(std::string_view name, std::vector<std::vector<TokenId>>& lists) {
  for (const JsonCursor& list : take(name).items()) lists.push_back(ids_of(list));
}

void TraceFields::operator()(std::string_view name, std::vector<std::string>& texts) {
  for (const JsonCursor& value : take(name).items()) texts.push_back(value.string());
}

void TraceFields::number(const SamplingNumber& number, int32_t& value) {
  if (!object_.contains(number.name)) return;
  value = static_cast<int32_t>(take(number.name).integer(number.range));
}

void TraceFields::number(const SamplingNumber& number, float& value) {
  if (!object_.contains(number.name)) return;
  value = static_cast<float>(take(number.name).number());
}

std::vector<JsonCursor> TraceFields::items_of(const JsonCursor& array, size_t expected) {
  auto items = array.items();
  if (items.size() != expected) {
    array.fail(found_instead(fmt::format("an array of {} values", items.size()),
                             std::to_string(expected)));
  }
  return items;
}

}  // namespace paceline
