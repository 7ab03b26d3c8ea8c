// Filters of lists.

#include <algorithm>

#include "chat/python_string.h"
#include "chat/template_convert.h"
#include "chat/template_filters.h"
#include "chat/template_tests.h"

namespace paceline {
namespace {

using Runtime = TemplateRuntime;
using Value = TemplateValue;
using Arguments = ArgumentReader;

// map(attribute='a.b', default=x), or map('filter', arguments...)
Value map(Runtime& runtime, const Value& value, Arguments& arguments) {
  const TemplateValues items = value.truth() ? to_items(runtime, value) : TemplateValues();
  TemplateValues mapped;
  TemplateValues given = arguments.rest();
  if (given.empty()) {
    const AttributePath path(arguments.required("attribute"));
    const auto otherwise = arguments.optional("default");
    for (const Value& item : items) {
      runtime.step();
      Value found = path.of(runtime, item);
      mapped.push_back(found.is_undefined() && otherwise ? *otherwise : std::move(found));
    }
    return Value::stream(std::move(mapped));
  }
  if (!given[0].is_string()) throw TemplateError("map: the filter's name must be a string");
  const std::string filter = given[0].text();
  given.erase(given.begin());
  for (const Value& item : items)
    mapped.push_back(apply_filter(runtime, filter, item, {.positional = given}));
  return Value::stream(std::move(mapped));
}

enum class Keep { passing, failing };
enum class Look { item, attribute };

Value select(Runtime& runtime, const Value& value, Arguments& arguments, Keep keep, Look look) {
  const TemplateValues items = value.truth() ? to_items(runtime, value) : TemplateValues();
  TemplateValues given = arguments.rest();
  AttributePath path;
  if (look == Look::attribute) {
    if (given.empty()) throw TemplateError("Missing parameter for attribute name");
    path = AttributePath(given[0]);
    given.erase(given.begin());
  }
  std::string test;
  if (!given.empty()) {
    if (!given[0].is_string()) throw TemplateError("the test's name must be a string");
    test = given[0].text();
    given.erase(given.begin());
  }
  TemplateValues kept;
  for (const Value& item : items) {
    runtime.step();
    const Value looked_at = path.of(runtime, item);
    const bool passes = test.empty() ? looked_at.truth()
                                     : apply_test(runtime, test, looked_at, {.positional = given});
    if (passes == (keep == Keep::passing)) kept.push_back(item);
  }
  return Value::stream(std::move(kept));
}

Value first(Runtime& runtime, const Value& value, Arguments&) {
  if (value.is_stream()) {
    TemplateStream& stream = value.stream_part();
    if (stream.next < stream.items.size()) return stream.items[stream.next++];
  } else {
    TemplateValues items = to_items(runtime, value);
    if (!items.empty()) return items.front();
  }
  return Value::undefined("No first item, sequence was empty.");
}

Value last(Runtime& runtime, const Value& value, Arguments&) {
  if (value.is_stream()) throw TemplateError("'generator' object is not reversible");
  TemplateValues items = to_items(runtime, value);
  if (!items.empty()) return items.back();
  return Value::undefined("No last item, sequence was empty.");
}

Value reverse(Runtime& runtime, const Value& value, Arguments&) {
  TemplateValues items = to_items(runtime, value);
  std::reverse(items.begin(), items.end());
  if (!value.is_string()) return Value::stream(std::move(items));
  std::string text;
  for (const Value& item : items) text += item.text();
  return Value(std::move(text));
}

Value batch(Runtime& runtime, const Value& value, Arguments& arguments) {
  const int64_t size = arguments.integer("linecount");
  const Value fill = arguments.optional("fill_with").value_or(Value());
  TemplateValues rows;
  TemplateValues row;
  for (const Value& item : to_items(runtime, value)) {
    if (static_cast<int64_t>(row.size()) == size)
      rows.push_back(runtime.list(std::exchange(row, {})));
    row.push_back(item);
  }
  if (!row.empty()) {
    if (!fill.is_none() && size > runtime.limits().range) {
      throw TemplateError("batch: more than 10,000 in a row", ErrorCode::exhausted);
    }
    while (!fill.is_none() && static_cast<int64_t>(row.size()) < size) row.push_back(fill);
    rows.push_back(runtime.list(std::move(row)));
  }
  return Value::stream(std::move(rows));
}

Value slice(Runtime& runtime, const Value& value, Arguments& arguments) {
  const int64_t slices = arguments.integer("slices");
  const Value fill = arguments.optional("fill_with").value_or(Value());
  const TemplateValues items = to_items(runtime, value);
  if (slices == 0) throw TemplateError("integer division or modulo by zero");
  if (slices > runtime.limits().range)
    throw TemplateError("slice: more than 10,000 slices", ErrorCode::exhausted);
  TemplateValues all;
  const auto length = static_cast<int64_t>(items.size());
  int64_t begin = 0;
  for (int64_t i = 0; i < slices; ++i) {
    const bool is_longer = i < length % slices;
    const int64_t end = begin + length / slices + (is_longer ? 1 : 0);
    TemplateValues part(items.begin() + begin, items.begin() + end);
    if (!fill.is_none() && !is_longer) part.push_back(fill);
    all.push_back(runtime.list(std::move(part)));
    begin = end;
  }
  return Value::stream(std::move(all));
}

Value items_of_mapping(Runtime& runtime, const Value& value, Arguments&) {
  TemplateValues pairs;
  if (value.is_undefined()) return Value::stream({});
  if (!value.is_mapping()) throw TemplateError("Can only get item pairs from a mapping.");
  runtime.charge_items(3 * value.members().members().size());
  for (const auto& [key, of_key] : value.members().members())
    pairs.push_back(Value::tuple({key, of_key}));
  return Value::stream(std::move(pairs));
}

Value attribute(Runtime& runtime, const Value& value, Arguments& arguments) {
  const std::string name = arguments.text("name");
  if (!value.is_mapping()) return attribute_of(runtime, value, name);
  // Of a dict the methods only, not the members.
  return attribute_of(runtime, Value::mapping({}), name);
}

constexpr FilterDefinition kSequenceFilters[] = {
    {"map", map},
    {"select", [](Runtime& r, const Value& v,
                  Arguments& a) { return select(r, v, a, Keep::passing, Look::item); }},
    {"reject", [](Runtime& r, const Value& v,
                  Arguments& a) { return select(r, v, a, Keep::failing, Look::item); }},
    {"selectattr", [](Runtime& r, const Value& v,
                      Arguments& a) { return select(r, v, a, Keep::passing, Look::attribute); }},
    {"rejectattr", [](Runtime& r, const Value& v,
                      Arguments& a) { return select(r, v, a, Keep::failing, Look::attribute); }},
    {"first", first},
    {"last", last},
    {"list", [](Runtime& r, const Value& v, Arguments&) { return Value::list(to_items(r, v)); }},
    {"reverse", reverse},
    {"batch", batch},
    {"slice", slice},
    {"items", items_of_mapping},
    {"attr", attribute},
};

}  // namespace

std::span<const FilterDefinition> sequence_filters() { return kSequenceFilters; }

}  // namespace paceline
