// Filters that compare the items of a list.
#include <fmt/format.h>

#include <algorithm>

#include "chat/python_case.h"
#include "chat/python_string.h"
#include "chat/template_compare.h"
#include "chat/template_convert.h"
#include "chat/template_filters.h"

namespace paceline {
namespace {

using Runtime = TemplateRuntime;
using Value = TemplateValue;
using Arguments = ArgumentReader;

Value without_case(Runtime& runtime, const Value& value) {
  return value.is_string() ? runtime.text(lower_case(value.text())) : value;
}

// The attributes to compare items by: one, or several with commas.
class SortKey {
 public:
  enum class Attributes { one, several };
  SortKey(Runtime& runtime, const Value& attribute, bool is_case_sensitive, Attributes attributes)
      : runtime_(runtime),
        is_case_sensitive_(is_case_sensitive),
        gives_lists_(attributes == Attributes::several) {
    if (attribute.is_string() && gives_lists_) {
      for (const std::string_view part : split_on(attribute.text(), ",", -1, SplitFrom::left)) {
        paths_.emplace_back(Value(std::string(part)));
      }
    } else {
      paths_.emplace_back(attribute);
    }
  }

  Value of(const Value& item) const {
    runtime_.step();
    if (!gives_lists_) return one(paths_[0], item);
    TemplateValues all;
    for (const AttributePath& path : paths_) all.push_back(one(path, item));
    return Value::list(std::move(all));
  }

 private:
  Value one(const AttributePath& path, const Value& item) const {
    Value value = path.of(runtime_, item);
    return is_case_sensitive_ ? value : without_case(runtime_, value);
  }

  Runtime& runtime_;
  bool is_case_sensitive_;
  bool gives_lists_;  // undefined values are equal inside lists, but can't be ordered alone
  std::vector<AttributePath> paths_;
};

struct Keyed {
  Value key;
  Value item;
};

void stable_sort(std::vector<Keyed>& items, bool reverse) {
  // Equal items keep their order either way.
  std::stable_sort(items.begin(), items.end(), [reverse](const Keyed& a, const Keyed& b) {
    return reverse ? less(b.key, a.key) : less(a.key, b.key);
  });
}

std::vector<Keyed> keyed_items(const TemplateValues& items, const SortKey& key) {
  std::vector<Keyed> all;
  for (const Value& item : items) all.push_back({key.of(item), item});
  return all;
}

TemplateValues without_keys(std::vector<Keyed> items) {
  TemplateValues all;
  for (Keyed& one : items) all.push_back(std::move(one.item));
  return all;
}

Value sort(Runtime& runtime, const Value& value, Arguments& arguments) {
  const bool reverse = arguments.truth("reverse", false);
  const bool is_case_sensitive = arguments.truth("case_sensitive", false);
  const Value attribute = arguments.optional("attribute").value_or(Value());
  auto items = keyed_items(to_items(runtime, value), SortKey(runtime, attribute, is_case_sensitive,
                                                             SortKey::Attributes::several));
  stable_sort(items, reverse);
  return runtime.list(without_keys(std::move(items)));
}

Value dict_sort(Runtime& runtime, const Value& value, Arguments& arguments) {
  const bool is_case_sensitive = arguments.truth("case_sensitive", false);
  const std::string by = arguments.text("by", "key");
  const bool reverse = arguments.truth("reverse", false);
  if (by != "key" && by != "value")
    throw TemplateError("You can only sort by either \"key\" or \"value\"");
  require_defined(value);
  if (!value.is_mapping()) {
    throw TemplateError("'{}' object has no attribute 'items'", value.type_name());
  }
  std::vector<Keyed> items;
  for (const auto& [key, of_key] : value.members().members()) {
    const Value& compared = by == "key" ? key : of_key;
    items.push_back({is_case_sensitive ? compared : without_case(runtime, compared),
                     Value::tuple({key, of_key})});
  }
  stable_sort(items, reverse);
  return runtime.list(without_keys(std::move(items)));
}

Value unique(Runtime& runtime, const Value& value, Arguments& arguments) {
  const bool is_case_sensitive = arguments.truth("case_sensitive", false);
  const SortKey key(runtime, arguments.optional("attribute").value_or(Value()), is_case_sensitive,
                    SortKey::Attributes::one);
  TemplateMapping seen;
  TemplateValues kept;
  for (const Value& item : to_items(runtime, value)) {
    Value of_item = key.of(item);
    runtime.step(seen.members().size() / 16);
    if (is_hashable(of_item) && seen.find(of_item) != nullptr) continue;
    seen.set(std::move(of_item), Value());
    kept.push_back(item);
  }
  return Value::stream(std::move(kept));
}

enum class Extreme { least, greatest };

Value extreme(Runtime& runtime, const Value& value, Arguments& arguments, Extreme which) {
  const bool is_case_sensitive = arguments.truth("case_sensitive", false);
  const SortKey key(runtime, arguments.optional("attribute").value_or(Value()), is_case_sensitive,
                    SortKey::Attributes::one);
  const auto items = keyed_items(to_items(runtime, value), key);
  if (items.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  const Keyed* found = &items[0];
  for (size_t i = 1; i < items.size(); ++i) {
    const Keyed& item = items[i];
    if (which == Extreme::least ? less(item.key, found->key) : less(found->key, item.key))
      found = &item;
  }
  return found->item;
}

Value group_of(Runtime& runtime, Value grouper, TemplateValues members) {
  auto pair = std::make_shared<TemplateSequence>();
  pair->items = {std::move(grouper), runtime.list(std::move(members))};
  pair->is_tuple = true;
  pair->is_group = true;
  pair->depth = std::max(pair->items[0].depth(), pair->items[1].depth()) + 1;
  return Value(std::shared_ptr<const TemplateSequence>(std::move(pair)));
}

Value group_by(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Value attribute = arguments.required("attribute");
  const auto otherwise = arguments.optional("default");
  const bool is_case_sensitive = arguments.truth("case_sensitive", false);
  const AttributePath path(attribute);
  std::vector<Keyed> items;
  for (const Value& item : to_items(runtime, value)) {
    runtime.step();
    Value key = path.of(runtime, item);
    if (key.is_undefined() && otherwise) key = *otherwise;
    items.push_back({is_case_sensitive ? key : without_case(runtime, key), item});
  }
  stable_sort(items, false);
  TemplateValues groups;
  for (size_t begin = 0; begin < items.size();) {
    size_t end = begin;
    TemplateValues members;
    for (; end < items.size() && equal(items[end].key, items[begin].key); ++end)
      members.push_back(items[end].item);
    // As written in the group's first item.
    Value grouper = path.of(runtime, items[begin].item);
    if (grouper.is_undefined() && otherwise) grouper = *otherwise;
    groups.push_back(group_of(runtime, std::move(grouper), std::move(members)));
    begin = std::max(end, begin + 1);
  }
  return runtime.list(std::move(groups));
}

constexpr FilterDefinition kOrderFilters[] = {
    {"sort", sort},
    {"dictsort", dict_sort},
    {"unique", unique},
    {"groupby", group_by},
    {"min",
     [](Runtime& r, const Value& v, Arguments& a) { return extreme(r, v, a, Extreme::least); }},
    {"max",
     [](Runtime& r, const Value& v, Arguments& a) { return extreme(r, v, a, Extreme::greatest); }},
};

}  // namespace

std::span<const FilterDefinition> order_filters() { return kOrderFilters; }

}  // namespace paceline
