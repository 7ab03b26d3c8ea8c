#include "grammar/schema_conjunct.h"

#include <algorithm>

namespace paceline {
namespace {

template <class T>
void insert_sorted(std::vector<T>& into, const std::vector<T>& values) {
  for (const T& value : values) {
    const auto at = std::lower_bound(into.begin(), into.end(), value);
    if (at == into.end() || *at != value) into.insert(at, value);
  }
}

// Of sorted lists.
template <class T>
void keep_common(std::optional<std::vector<T>>& kept, const std::vector<T>& values) {
  if (!kept) {
    kept = values;
    return;
  }
  std::vector<T> common;
  std::set_intersection(kept->begin(), kept->end(), values.begin(), values.end(),
                        std::back_inserter(common));
  kept = std::move(common);
}

void tighten_limit(std::optional<SchemaNumberLimit>& limit,
                   const std::optional<SchemaNumberLimit>& with, int sign) {
  if (!with) return;
  if (!limit || sign * with->value > sign * limit->value ||
      (with->value == limit->value && with->is_excluded)) {
    limit = with;
  }
}

void add_literals(SchemaSet& set, const SchemaSet& literals) {
  for (const SchemaLiteral literal : literals) add_to_schema_set(set, literal);
}

}  // namespace

bool SchemaNumberRules::is_any() const {
  return !minimum && !maximum && !integers_only && !no_points && !fractions_only && !has_point &&
         multiples.empty() && non_multiples.empty() && !values && excluded.empty();
}

bool SchemaStringRules::is_any() const {
  return min_length == 0 && max_length == kUnbounded && all.empty() && none.empty() && !values &&
         excluded.empty();
}

void SchemaConjunct::absorb_values(const SchemaValues& values) {
  JsonKinds allowed = values.constants;
  if (!values.numbers.empty()) allowed |= kNumberKind;
  if (!values.strings.empty()) allowed |= kStringKind;
  kinds &= allowed;
  keep_common(numbers.values, values.numbers);
  keep_common(strings.values, values.strings);
}

void SchemaConjunct::absorb_items(const SchemaNode& node) {
  while (arrays.prefix.size() < node.prefix_items.size()) arrays.prefix.push_back(arrays.rest);
  for (size_t i = 0; i < arrays.prefix.size(); ++i) {
    if (i < node.prefix_items.size()) {
      add_literals(arrays.prefix[i], {node.prefix_items[i]});
    } else if (node.items) {
      add_literals(arrays.prefix[i], {*node.items});
    }
  }
  if (node.items) add_literals(arrays.rest, {*node.items});
}

void SchemaConjunct::absorb(const SchemaNode& node) {
  kinds &= node.kinds;
  numbers.integers_only |= node.integers_only;
  numbers.no_points |= node.no_points;
  numbers.fractions_only |= node.fractions_only;
  numbers.has_point |= node.has_point;
  tighten_limit(numbers.minimum, node.minimum, 1);
  tighten_limit(numbers.maximum, node.maximum, -1);
  insert_sorted(numbers.multiples, node.multiples);
  insert_sorted(numbers.non_multiples, node.non_multiples);
  insert_sorted(numbers.excluded, node.excluded.numbers);
  for (const SchemaValues& values : node.values) {
    if (values.containers.empty()) absorb_values(values);
  }
  kinds &= static_cast<JsonKinds>(~node.excluded.constants);

  strings.min_length = std::max(strings.min_length, node.min_length);
  strings.max_length = std::min(strings.max_length, node.max_length);
  insert_sorted(strings.all, node.strings);
  insert_sorted(strings.none, node.excluded_strings);
  insert_sorted(strings.excluded, node.excluded.strings);

  if (node.has_item_rules()) absorb_items(node);
  arrays.min = std::max(arrays.min, node.min_items);
  arrays.max = std::min(arrays.max, node.max_items);
  if (node.has_unique_items) arrays.unique = &node;
  arrays.contains.insert(arrays.contains.end(), node.contains.begin(), node.contains.end());

  if (node.has_object_rules()) objects.parts.push_back({&node});
  const bool is_first = objects.required.empty();
  if (is_first) objects.required = node.required;
  for (const std::string_view name : node.required) {
    if (is_first) break;
    const auto& known = objects.required;
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      objects.required.push_back(name);
    }
  }
  objects.min = std::max(objects.min, node.min_properties);
  objects.max = std::min(objects.max, node.max_properties);
  if (node.property_names) add_literals(objects.names, {*node.property_names});
  for (const SchemaPropertyExists& exists : node.exists) objects.exists.push_back(&exists);
  for (const SchemaRefusal& refusal : node.refusals) refusals.emplace_back(&node, &refusal);
}

}  // namespace paceline
