#include "grammar/schema_negation.h"

#include <algorithm>

namespace paceline {
namespace {

class SchemaNegation {
 public:
  SchemaNegation(SchemaDocument& document, const SchemaNode& node)
      : document_(document), node_(node) {}

  std::vector<SchemaSet> options() {
    negate_kinds();
    for (const SchemaValues& values : node_.values) negate_values(values);
    negate_excluded();
    negate_numbers();
    negate_strings();
    negate_items();
    negate_properties();
    negate_applicators();
    negate_refusals();
    return std::move(options_);
  }

 private:
  SchemaNode made(JsonKinds kinds) const {
    return {.json = node_.json, .resource_index = node_.resource_index, .kinds = kinds};
  }
  void add(SchemaNode node, SchemaSet with = {}) {
    with.push_back(document_.add(std::move(node)));
    options_.push_back(std::move(with));
  }

  void negate_kinds();
  void negate_values(const SchemaValues& values);
  void negate_excluded();
  void negate_numbers();
  void negate_strings();
  void negate_items();
  void negate_contains(const SchemaContains& contains);
  void negate_properties();
  void negate_property_values();
  void negate_exists(const SchemaPropertyExists& exists);
  void negate_applicators();
  void negate_refusals();

  SchemaDocument& document_;
  const SchemaNode& node_;
  std::vector<SchemaSet> options_;
};

void SchemaNegation::negate_kinds() {
  if (node_.kinds != kAllKinds) add(made(static_cast<JsonKinds>(kAllKinds & ~node_.kinds)));
  if (node_.integers_only) {
    SchemaNode fractions = made(kNumberKind);
    fractions.fractions_only = !node_.no_points;
    fractions.has_point = node_.no_points;
    add(std::move(fractions));
  }
  if (node_.fractions_only) {
    SchemaNode integers = made(kNumberKind);
    integers.integers_only = true;
    add(std::move(integers));
  }
  if (node_.has_point) {
    SchemaNode integers = made(kNumberKind);
    integers.integers_only = integers.no_points = true;
    add(std::move(integers));
  }
}

void SchemaNegation::negate_values(const SchemaValues& values) {
  SchemaNode others = made(kAllKinds);
  others.excluded = values;
  SchemaSet with;
  for (const SchemaLiteral literal : values.containers) with.push_back(negated(literal));
  add(std::move(others), std::move(with));
}

void SchemaNegation::negate_excluded() {
  const SchemaValues& excluded = node_.excluded;
  if (excluded.constants == 0 && excluded.numbers.empty() && excluded.strings.empty()) return;
  SchemaNode these = made(kAllKinds);
  these.values.push_back(excluded);
  these.values[0].containers.clear();
  add(std::move(these));
}

void SchemaNegation::negate_numbers() {
  if (node_.minimum) {
    SchemaNode below = made(kNumberKind);
    below.maximum = node_.minimum;
    below.maximum->is_excluded = !node_.minimum->is_excluded;
    add(std::move(below));
  }
  if (node_.maximum) {
    SchemaNode above = made(kNumberKind);
    above.minimum = node_.maximum;
    above.minimum->is_excluded = !node_.maximum->is_excluded;
    add(std::move(above));
  }
  for (const std::string& divisor : node_.multiples) {
    SchemaNode others = made(kNumberKind);
    others.non_multiples.push_back(divisor);
    add(std::move(others));
  }
  for (const std::string& divisor : node_.non_multiples) {
    SchemaNode multiples = made(kNumberKind);
    multiples.multiples.push_back(divisor);
    add(std::move(multiples));
  }
}

void SchemaNegation::negate_strings() {
  if (node_.min_length > 0) {
    SchemaNode shorter = made(kStringKind);
    shorter.max_length = node_.min_length - 1;
    add(std::move(shorter));
  }
  if (node_.max_length != kUnbounded) {
    SchemaNode longer = made(kStringKind);
    longer.min_length = node_.max_length + 1;
    add(std::move(longer));
  }
  for (const RegexId regex : node_.strings) {
    SchemaNode others = made(kStringKind);
    others.excluded_strings.push_back(regex);
    add(std::move(others));
  }
  for (const RegexId regex : node_.excluded_strings) {
    SchemaNode others = made(kStringKind);
    others.strings.push_back(regex);
    add(std::move(others));
  }
}

void SchemaNegation::negate_items() {
  if (node_.min_items > 0) {
    SchemaNode fewer = made(kArrayKind);
    fewer.max_items = node_.min_items - 1;
    add(std::move(fewer));
  }
  if (node_.max_items != kUnbounded) {
    SchemaNode more = made(kArrayKind);
    more.min_items = node_.max_items + 1;
    add(std::move(more));
  }
  const auto num_prefix = static_cast<uint32_t>(node_.prefix_items.size());
  for (uint32_t i = 0; i < num_prefix; ++i) {
    if (node_.prefix_items[i] == document_.anything()) continue;
    SchemaNode other = made(kArrayKind);
    other.min_items = i + 1;
    other.prefix_items.assign(i, document_.anything());
    other.prefix_items.push_back(negated(node_.prefix_items[i]));
    add(std::move(other));
  }
  if (node_.items && *node_.items != document_.anything()) {
    SchemaNode other = made(kArrayKind);
    if (*node_.items == document_.nothing()) {
      other.min_items = num_prefix + 1;
    } else {
      other.contains.push_back({.items = {negated(*node_.items)}, .from = num_prefix});
    }
    add(std::move(other));
  }
  for (const SchemaContains& contains : node_.contains) negate_contains(contains);
  if (node_.has_unique_items) {
    SchemaNode other = made(kArrayKind);
    other.min_items = 2;
    other.refusals.push_back({kArrayKind, "uniqueItems", "can't be enforced within \"not\""});
    add(std::move(other));
  }
}

void SchemaNegation::negate_contains(const SchemaContains& contains) {
  SchemaNode none = made(kArrayKind);
  if (contains.min == 1 && contains.items.size() == 1) {
    none.prefix_items.assign(contains.from, document_.anything());
    none.items = negated(contains.items[0]);
  } else {
    none.refusals.push_back({kArrayKind, "minContains", "can't be enforced within \"not\""});
  }
  add(std::move(none));
}

void SchemaNegation::negate_property_values() {
  for (const auto& [name, literal] : node_.properties) {
    if (literal == document_.anything()) continue;
    SchemaNode other = made(kObjectKind);
    other.required.push_back(name);
    if (literal != document_.nothing()) other.properties.emplace_back(name, negated(literal));
    add(std::move(other));
  }
  const auto add_exists = [&](SchemaPropertyExists exists, SchemaLiteral literal) {
    if (literal == document_.anything()) return;
    if (literal != document_.nothing()) exists.value.push_back(negated(literal));
    SchemaNode other = made(kObjectKind);
    other.min_properties = 1;
    other.exists.push_back(std::move(exists));
    add(std::move(other));
  };
  for (const auto& [pattern, literal] : node_.patterns) {
    add_exists({.undeclared_in = nullptr, .pattern = pattern, .name = {}, .value = {}}, literal);
  }
  if (node_.additional) {
    add_exists({.undeclared_in = &node_, .pattern = {}, .name = {}, .value = {}},
               *node_.additional);
  }
  if (node_.property_names && *node_.property_names != document_.anything()) {
    SchemaNode other = made(kObjectKind);
    other.min_properties = 1;
    other.exists.push_back({.undeclared_in = nullptr,
                            .pattern = {},
                            .name = {negated(*node_.property_names)},
                            .value = {}});
    add(std::move(other));
  }
}

void SchemaNegation::negate_exists(const SchemaPropertyExists& exists) {
  SchemaNode none = made(kObjectKind);
  const bool is_simple = exists.value.size() <= 1 && exists.name.empty();
  const SchemaLiteral value =
      exists.value.empty() ? document_.nothing() : negated(exists.value.front());
  if (is_simple && exists.pattern && exists.undeclared_in == nullptr) {
    none.patterns.emplace_back(*exists.pattern, value);
  } else if (is_simple && !exists.pattern && exists.undeclared_in != nullptr) {
    for (const auto& property : exists.undeclared_in->properties) {
      none.properties.emplace_back(property.first, document_.anything());
    }
    for (const auto& pattern : exists.undeclared_in->patterns) {
      none.patterns.emplace_back(pattern.first, document_.anything());
    }
    none.additional = value;
  } else if (exists.name.size() == 1 && exists.value.empty()) {
    none.property_names = negated(exists.name.front());
  } else {
    none.refusals.push_back({kObjectKind, "not", "can't be enforced here"});
  }
  add(std::move(none));
}

void SchemaNegation::negate_properties() {
  for (const std::string_view name : node_.required) {
    SchemaNode without = made(kObjectKind);
    without.properties.emplace_back(name, document_.nothing());
    add(std::move(without));
  }
  negate_property_values();
  for (const SchemaPropertyExists& exists : node_.exists) negate_exists(exists);
  if (node_.min_properties > 0) {
    SchemaNode fewer = made(kObjectKind);
    fewer.max_properties = node_.min_properties - 1;
    add(std::move(fewer));
  }
  if (node_.max_properties != kUnbounded) {
    SchemaNode more = made(kObjectKind);
    more.min_properties = node_.max_properties + 1;
    add(std::move(more));
  }
}

void SchemaNegation::negate_applicators() {
  for (const SchemaLiteral literal : node_.all_of) options_.push_back({negated(literal)});
  for (const SchemaChoice& choice : node_.choices) {
    options_.insert(options_.end(), choice.negated_options.begin(), choice.negated_options.end());
  }
  const std::vector<SchemaLiteral>& branches = node_.one_of;
  if (branches.empty()) return;
  SchemaSet none;
  for (const SchemaLiteral literal : branches) none.push_back(negated(literal));
  options_.push_back(std::move(none));
  for (size_t i = 0; i < branches.size(); ++i) {
    for (size_t k = i + 1; k < branches.size(); ++k) {
      options_.push_back({branches[i], branches[k]});
    }
  }
}

void SchemaNegation::negate_refusals() {
  for (const SchemaRefusal& refusal : node_.refusals) {
    SchemaNode other = made(refusal.kinds);
    other.refusals.push_back(refusal);
    add(std::move(other));
  }
}

}  // namespace

std::vector<SchemaSet> negation_options(SchemaDocument& document, SchemaNodeId id) {
  return SchemaNegation(document, document.node(id)).options();
}

}  // namespace paceline
