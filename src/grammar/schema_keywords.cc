#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_set>

#include "base/json_cursor.h"
#include "grammar/json_text.h"
#include "grammar/schema_document.h"

namespace paceline {
namespace {

// Formats that the drafts define but that are no regular languages here. Others are annotations.
bool is_format_of_drafts(std::string_view name) {
  static constexpr std::string_view kNames[] = {"regex", "uri-template", "idn-email",
                                                "idn-hostname"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// Some clients write "OBJECT".
std::string unknown_type(const Json& type) {
  std::string expected = "null, boolean, integer, number, string, array, object or a list of these";
  if (type.is_string()) {
    std::string lower = *type.string();
    for (char& c : lower) c = 'A' <= c && c <= 'Z' ? static_cast<char>(c + 32) : c;
    if (lower != *type.string() && expected.find(lower) != std::string::npos) {
      expected = fmt::format("\"{}\", in lower case", lower);
    }
  }
  return found_instead(shown(type), expected);
}

// Reads one keyword after the other into a node.
class SchemaKeywordReader {
 public:
  SchemaKeywordReader(SchemaDocument& document, SchemaNode& node)
      : document_(document),
        node_(node),
        schema_(*node.json),
        draft_(document.resource(node.resource_index).draft) {}

  void read();

 private:
  using Handler = void (SchemaKeywordReader::*)(const Json& value);
  struct Keyword {
    std::string_view name;
    Handler handler;
    SchemaDraft first = SchemaDraft::draft4;
    SchemaDraft last = SchemaDraft::draft2020;
  };
  static const Keyword* find_keyword(std::string_view name);
  static bool is_keyword_less(const Keyword& a, const Keyword& b) { return a.name < b.name; }

  [[noreturn]] void malformed(std::string_view expected) const;
  void refuse(JsonKinds kinds, std::string reason);
  void widen_additional();
  const Json* sibling(std::string_view keyword) const;
  void add_to_all_of(SchemaLiteral literal);
  // "additionalProperties" speaks of the "properties" beside it: the first of the two is their
  // place among other keywords that have properties.
  void place_properties() {
    if (node_.properties_position == 0) node_.properties_position = position_;
  }
  SchemaLiteral child(const Json& value);
  std::vector<SchemaLiteral> children(const Json& value);
  std::vector<std::string_view> names(const Json& value) const;
  uint32_t count(const Json& value) const;
  SchemaLiteral presence(std::string_view name, bool is_present);
  void add_dependency(std::string_view name, SchemaLiteral then);
  void add_dependency(std::string_view name, const Json& names);
  std::optional<RegexId> regex_of(std::string_view pattern, JsonKinds kinds);
  SchemaValues values_of(std::span<const Json> values);
  bool has_applicators() const;

  void ref(const Json& value);
  void dynamic_ref(const Json& value);
  void type(const Json& value);
  void enumeration(const Json& value);
  void constant(const Json& value);
  void minimum(const Json& value) { limit(value, "exclusiveMinimum", node_.minimum, 1); }
  void maximum(const Json& value) { limit(value, "exclusiveMaximum", node_.maximum, -1); }
  void exclusive_minimum(const Json& value) { exclusive_limit(value, node_.minimum, 1); }
  void exclusive_maximum(const Json& value) { exclusive_limit(value, node_.maximum, -1); }
  void limit(const Json& value, std::string_view exclusive, std::optional<SchemaNumberLimit>& limit,
             int sign);
  void exclusive_limit(const Json& value, std::optional<SchemaNumberLimit>& limit, int sign);
  void tighten(std::optional<SchemaNumberLimit>& limit, SchemaNumberLimit with, int sign);
  void multiple_of(const Json& value);
  void min_length(const Json& value) { node_.min_length = count(value); }
  void max_length(const Json& value) { node_.max_length = count(value); }
  void pattern(const Json& value);
  void format(const Json& value);
  void items(const Json& value);
  void prefix_items(const Json& value) { node_.prefix_items = children(value); }
  void additional_items(const Json& value);
  void min_items(const Json& value) { node_.min_items = count(value); }
  void max_items(const Json& value) { node_.max_items = count(value); }
  void unique_items(const Json& value);
  void contains(const Json& value);
  void unevaluated_items(const Json& value);
  void properties(const Json& value);
  void pattern_properties(const Json& value);
  void additional_properties(const Json& value) {
    place_properties();
    node_.additional = child(value);
  }
  void required(const Json& value) { node_.required = names(value); }
  void min_properties(const Json& value) { node_.min_properties = count(value); }
  void max_properties(const Json& value) { node_.max_properties = count(value); }
  void property_names(const Json& value) { node_.property_names = child(value); }
  void dependencies(const Json& value);
  void dependent_required(const Json& value);
  void dependent_schemas(const Json& value);
  void unevaluated_properties(const Json& value);
  void all_of(const Json& value);
  void any_of(const Json& value);
  void one_of(const Json& value);
  void negation(const Json& value) { add_to_all_of(negated(child(value))); }
  void condition(const Json& value);

  SchemaDocument& document_;
  SchemaNode& node_;
  const Json& schema_;
  SchemaDraft draft_;
  std::string_view keyword_;
  SchemaPosition position_ = 0;
  std::vector<SchemaLiteral> unread_patterns_;  // what values of names that match them obey
};

const SchemaKeywordReader::Keyword* SchemaKeywordReader::find_keyword(std::string_view name) {
  using R = SchemaKeywordReader;
  using D = SchemaDraft;
  static const std::vector<Keyword> keywords = [] {
    std::vector<Keyword> all = {
        {"$ref", &R::ref},
        {"$dynamicRef", &R::dynamic_ref, D::draft2020},
        {"$recursiveRef", &R::dynamic_ref, D::draft2019, D::draft2019},
        {"type", &R::type},
        {"enum", &R::enumeration},
        {"const", &R::constant, D::draft6},
        {"minimum", &R::minimum},
        {"maximum", &R::maximum},
        {"exclusiveMinimum", &R::exclusive_minimum},
        {"exclusiveMaximum", &R::exclusive_maximum},
        {"multipleOf", &R::multiple_of},
        {"minLength", &R::min_length},
        {"maxLength", &R::max_length},
        {"pattern", &R::pattern},
        {"format", &R::format},
        {"items", &R::items},
        {"prefixItems", &R::prefix_items, D::draft2020},
        {"additionalItems", &R::additional_items, D::draft4, D::draft2019},
        {"minItems", &R::min_items},
        {"maxItems", &R::max_items},
        {"uniqueItems", &R::unique_items},
        {"contains", &R::contains, D::draft6},
        {"unevaluatedItems", &R::unevaluated_items, D::draft2019},
        {"properties", &R::properties},
        {"patternProperties", &R::pattern_properties},
        {"additionalProperties", &R::additional_properties},
        {"required", &R::required},
        {"minProperties", &R::min_properties},
        {"maxProperties", &R::max_properties},
        {"propertyNames", &R::property_names, D::draft6},
        {"dependencies", &R::dependencies, D::draft4, D::draft7},
        {"dependentRequired", &R::dependent_required, D::draft2019},
        {"dependentSchemas", &R::dependent_schemas, D::draft2019},
        {"unevaluatedProperties", &R::unevaluated_properties, D::draft2019},
        {"allOf", &R::all_of},
        {"anyOf", &R::any_of},
        {"oneOf", &R::one_of},
        {"not", &R::negation},
        {"if", &R::condition, D::draft7},
    };
    std::sort(all.begin(), all.end(), is_keyword_less);
    return all;
  }();
  const auto found = std::lower_bound(keywords.begin(), keywords.end(),
                                      Keyword{.name = name, .handler = nullptr}, is_keyword_less);
  return found == keywords.end() || found->name != name ? nullptr : &*found;
}

void SchemaKeywordReader::read() {
  const Json* reference = schema_.find("$ref");
  if (draft_ <= SchemaDraft::draft7 && reference != nullptr && reference->is_string()) {
    keyword_ = "$ref";
    return ref(*reference);
  }
  for (const auto& [name, value] : *schema_.object()) {
    const Keyword* keyword = find_keyword(name);
    ++position_;
    if (keyword == nullptr) continue;
    keyword_ = keyword->name;
    const bool is_known =
        draft_ == SchemaDraft::unstated || (keyword->first <= draft_ && draft_ <= keyword->last);
    if (is_known) {
      (this->*keyword->handler)(value);
    } else if (document_.rigor() == SchemaRigor::strict) {
      refuse(kAllKinds, "isn't a keyword of the draft that \"$schema\" names");
    }
  }
  widen_additional();
}

void SchemaKeywordReader::malformed(std::string_view expected) const {
  document_.fail(ErrorCode::invalid, schema_, keyword_,
                 found_instead(shown(*schema_.find(keyword_)), expected));
}

void SchemaKeywordReader::refuse(JsonKinds kinds, std::string reason) {
  node_.refusals.push_back({kinds, keyword_, std::move(reason)});
}

const Json* SchemaKeywordReader::sibling(std::string_view keyword) const {
  return schema_.find(keyword);
}

void SchemaKeywordReader::add_to_all_of(SchemaLiteral literal) {
  node_.all_of.push_back(literal);
  node_.all_of_positions.push_back(position_);
}

SchemaLiteral SchemaKeywordReader::child(const Json& value) {
  return document_.literal_at(value, node_.resource_index);
}

std::vector<SchemaLiteral> SchemaKeywordReader::children(const Json& value) {
  if (!value.is_array()) malformed("an array of schemas");
  std::vector<SchemaLiteral> found;
  for (const Json& item : *value.array()) found.push_back(child(item));
  return found;
}

std::vector<std::string_view> SchemaKeywordReader::names(const Json& value) const {
  if (!value.is_array()) malformed("an array of strings");
  std::vector<std::string_view> found;
  std::unordered_set<std::string_view> known;
  for (const Json& item : *value.array()) {
    if (!item.is_string()) malformed("an array of strings");
    if (known.insert(*item.string()).second) found.push_back(*item.string());
  }
  return found;
}

// Counts beyond the length of any text are one.
uint32_t SchemaKeywordReader::count(const Json& value) const {
  constexpr double kBeyondTexts = 4e9;
  const auto number = value.number();
  if (!number || *number < 0 || std::trunc(*number) != *number) malformed("an integer from 0 on");
  return *number >= kBeyondTexts ? kUnbounded : static_cast<uint32_t>(*number);
}

void SchemaKeywordReader::ref(const Json& value) {
  if (!value.is_string()) malformed("a string");
  const auto target = document_.resolve(schema_, *value.string(), node_.resource_index);
  if (target) return add_to_all_of(*target);
  refuse(kAllKinds, fmt::format("{} is outside of the document; put the schema into its \"$defs\"",
                                shown_text(*value.string())));
}

// Within one resource the outermost anchor of a name is the only one.
void SchemaKeywordReader::dynamic_ref(const Json& value) {
  if (document_.num_resources() > 1) {
    return refuse(kAllKinds, "isn't supported in a document with several \"$id\"; use \"$ref\"");
  }
  ref(value);
}

void SchemaKeywordReader::type(const Json& value) {
  static constexpr std::pair<std::string_view, JsonKinds> kTypes[] = {
      {"null", kNullKind},      {"boolean", kFalseKind | kTrueKind},
      {"integer", kNumberKind}, {"number", kNumberKind},
      {"string", kStringKind},  {"array", kArrayKind},
      {"object", kObjectKind}};
  JsonKinds kinds = 0;
  bool has_integers = false;
  bool has_numbers = false;
  const std::span<const Json> types =
      value.is_array() ? std::span<const Json>(*value.array()) : std::span(&value, 1);
  for (const Json& type : types) {
    const auto* found = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& known) {
      return type.is_string() && *type.string() == known.first;
    });
    if (found == std::end(kTypes)) {
      document_.fail(ErrorCode::invalid, schema_, keyword_, unknown_type(type));
    }
    kinds |= found->second;
    has_integers |= found->first == "integer";
    has_numbers |= found->first == "number";
  }
  node_.kinds &= kinds;
  node_.integers_only = has_integers && !has_numbers;
  node_.no_points = node_.integers_only && draft_ == SchemaDraft::draft4;
}

SchemaValues SchemaKeywordReader::values_of(std::span<const Json> values) {
  SchemaValues found = schema_values(values);
  for (const Json& value : values) {
    if (!value.is_array() && !value.is_object()) continue;
    found.containers.push_back(document_.literal_of_value(value, node_.resource_index));
  }
  if (found.containers.empty()) return found;
  found.choice.position = position_;
  SchemaNode scalars{.json = &schema_, .resource_index = node_.resource_index};
  scalars.values.push_back(found);
  scalars.values[0].containers.clear();
  found.choice.options.push_back({document_.add(std::move(scalars))});
  for (const SchemaLiteral literal : found.containers) found.choice.options.push_back({literal});
  return found;
}

void SchemaKeywordReader::enumeration(const Json& value) {
  if (!value.is_array()) malformed("an array");
  node_.values.push_back(values_of(*value.array()));
}

void SchemaKeywordReader::constant(const Json& value) {
  node_.values.push_back(values_of({&value, 1}));
}

void SchemaKeywordReader::tighten(std::optional<SchemaNumberLimit>& limit, SchemaNumberLimit with,
                                  int sign) {
  if (!limit || sign * with.value > sign * limit->value ||
      (with.value == limit->value && with.is_excluded)) {
    limit = std::move(with);
  }
}

void SchemaKeywordReader::limit(const Json& value, std::string_view exclusive,
                                std::optional<SchemaNumberLimit>& limit, int sign) {
  if (!value.is_number()) malformed("a number");
  const Json* excludes = sibling(exclusive);
  const bool is_excluded = excludes != nullptr && excludes->boolean().value_or(false);
  tighten(limit, schema_number_limit(value, is_excluded), sign);
}

void SchemaKeywordReader::exclusive_limit(const Json& value,
                                          std::optional<SchemaNumberLimit>& limit, int sign) {
  if (value.is_bool()) {
    if (draft_ == SchemaDraft::draft4 || draft_ == SchemaDraft::unstated) return;
    malformed("a number (true and false are draft 4's)");
  }
  if (!value.is_number()) malformed("a number");
  tighten(limit, schema_number_limit(value, true), sign);
}

void SchemaKeywordReader::multiple_of(const Json& value) {
  if (!value.is_number() || *value.number() <= 0) malformed("a number above 0");
  std::string divisor = plain_decimal(value);
  try {
    json_multiples_of(document_.regexes(), divisor);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    return refuse(kNumberKind, error.what());
  }
  node_.multiples.push_back(std::move(divisor));
}

// Nothing, and a refusal, when it can't be enforced. With best effort that holds of every pattern
// that can't be read: it may be written for another language's expressions.
std::optional<RegexId> SchemaKeywordReader::regex_of(std::string_view pattern, JsonKinds kinds) {
  try {
    return document_.pattern(pattern);
  } catch (const Error& error) {
    const std::string what = fmt::format("{}: {}", shown_text(pattern), error.what());
    const bool is_best_effort = document_.rigor() == SchemaRigor::best_effort;
    if (error.code() != ErrorCode::unsupported && !is_best_effort) {
      document_.fail(error.code(), schema_, keyword_, what);
    }
    refuse(kinds, what);
    return std::nullopt;
  }
}

void SchemaKeywordReader::pattern(const Json& value) {
  if (!value.is_string()) malformed("a string");
  if (const auto regex = regex_of(*value.string(), kStringKind)) node_.strings.push_back(*regex);
}

void SchemaKeywordReader::format(const Json& value) {
  if (!value.is_string()) malformed("a string");
  if (const auto regex = document_.format(*value.string())) {
    node_.strings.push_back(*regex);
  } else if (document_.rigor() == SchemaRigor::strict || is_format_of_drafts(*value.string())) {
    refuse(kStringKind,
           fmt::format("{} isn't a format that can be enforced", shown_text(*value.string())));
  }
}

void SchemaKeywordReader::items(const Json& value) {
  if (value.is_array()) {
    node_.prefix_items = children(value);
  } else {
    node_.items = child(value);
  }
}

// It only counts beside an array of items.
void SchemaKeywordReader::additional_items(const Json& value) {
  const Json* items = sibling("items");
  if (items != nullptr && items->is_array()) node_.items = child(value);
}

void SchemaKeywordReader::unique_items(const Json& value) {
  if (!value.is_bool()) malformed("true or false");
  node_.has_unique_items = *value.boolean();
}

void SchemaKeywordReader::contains(const Json& value) {
  const bool has_counts = draft_ >= SchemaDraft::draft2019;
  const Json* min = has_counts ? sibling("minContains") : nullptr;
  const Json* max = has_counts ? sibling("maxContains") : nullptr;
  const SchemaLiteral item = child(value);
  const uint32_t at_least = min == nullptr ? 1 : count(*min);
  if (at_least > 0) node_.contains.push_back({.items = {item}, .min = at_least});
  if (max == nullptr) return;
  if (item == document_.anything()) {
    node_.max_items = std::min(node_.max_items, count(*max));
  } else {
    keyword_ = "maxContains";
    refuse(kArrayKind, "can't be enforced");
  }
}

bool SchemaKeywordReader::has_applicators() const {
  static constexpr std::array<std::string_view, 10> kApplicators = {
      "$ref", "$dynamicRef", "$recursiveRef", "allOf",           "anyOf", "oneOf",
      "not",  "if",          "then",          "dependentSchemas"};
  return std::any_of(kApplicators.begin(), kApplicators.end(),
                     [&](std::string_view name) { return sibling(name) != nullptr; });
}

void SchemaKeywordReader::unevaluated_items(const Json& value) {
  if (value.boolean().value_or(false)) return;
  const Json* items = sibling("items");
  if (sibling("additionalItems") != nullptr || (items != nullptr && !items->is_array())) return;
  if (has_applicators() || sibling("contains") != nullptr) {
    return refuse(kArrayKind, "can't be enforced beside allOf, anyOf and other applicators");
  }
  node_.items = child(value);
}

void SchemaKeywordReader::properties(const Json& value) {
  if (!value.is_object()) malformed("an object of schemas");
  place_properties();
  for (const auto& [name, schema] : *value.object()) {
    node_.properties.emplace_back(name, child(schema));
  }
  constexpr size_t kFew = 16;
  if (node_.properties.size() > kFew) {
    node_.property_index = {node_.properties.begin(), node_.properties.end()};
  }
}

void SchemaKeywordReader::pattern_properties(const Json& value) {
  if (!value.is_object()) malformed("an object of schemas");
  for (const auto& [pattern, schema] : *value.object()) {
    const SchemaLiteral literal = child(schema);
    if (const auto regex = regex_of(pattern, kObjectKind)) {
      node_.patterns.emplace_back(*regex, literal);
    } else {
      unread_patterns_.push_back(literal);
    }
  }
}

// A name that isn't declared may match a pattern that can't be enforced.
void SchemaKeywordReader::widen_additional() {
  if (unread_patterns_.empty() || !node_.additional) return;
  SchemaNode either{.json = &schema_, .resource_index = node_.resource_index};
  SchemaChoice& choice = either.choices.emplace_back();
  SchemaSet& none = choice.negated_options.emplace_back();
  unread_patterns_.push_back(*node_.additional);
  for (const SchemaLiteral literal : unread_patterns_) {
    choice.options.push_back({literal});
    none.push_back(negated(literal));
  }
  node_.additional = document_.add(std::move(either));
}

// {"properties": {name: false}}, or {"required": [name]}.
SchemaLiteral SchemaKeywordReader::presence(std::string_view name, bool is_present) {
  SchemaNode made{.json = &schema_, .resource_index = node_.resource_index};
  if (is_present) {
    made.kinds = kObjectKind;
    made.required.push_back(name);
  } else {
    made.properties.emplace_back(name, document_.nothing());
  }
  return document_.add(std::move(made));
}

void SchemaKeywordReader::add_dependency(std::string_view name, SchemaLiteral then) {
  const SchemaLiteral absent = presence(name, false);
  const SchemaLiteral present = presence(name, true);
  node_.choices.push_back({.position = position_,
                           .is_conditional = true,
                           .options = {{absent}, {present, then}},
                           .negated_options = {{present, negated(then)}}});
}

void SchemaKeywordReader::add_dependency(std::string_view name, const Json& names) {
  SchemaNode then{.json = &schema_, .resource_index = node_.resource_index};
  then.required = this->names(names);
  if (!then.required.empty()) add_dependency(name, document_.add(std::move(then)));
}

void SchemaKeywordReader::dependencies(const Json& value) {
  if (!value.is_object()) malformed("an object");
  for (const auto& [name, then] : *value.object()) {
    then.is_array() ? add_dependency(name, then) : add_dependency(name, child(then));
  }
}

void SchemaKeywordReader::dependent_required(const Json& value) {
  if (!value.is_object()) malformed("an object");
  for (const auto& [name, then] : *value.object()) add_dependency(name, then);
}

void SchemaKeywordReader::dependent_schemas(const Json& value) {
  if (!value.is_object()) malformed("an object");
  for (const auto& [name, then] : *value.object()) add_dependency(name, child(then));
}

void SchemaKeywordReader::unevaluated_properties(const Json& value) {
  if (value.boolean().value_or(false) || sibling("additionalProperties") != nullptr) return;
  if (has_applicators()) {
    return refuse(kObjectKind, "can't be enforced beside allOf, anyOf and other applicators");
  }
  node_.additional = child(value);
}

void SchemaKeywordReader::all_of(const Json& value) {
  for (const SchemaLiteral literal : children(value)) add_to_all_of(literal);
}

void SchemaKeywordReader::any_of(const Json& value) {
  SchemaChoice choice{.position = position_};
  SchemaSet none;
  for (const SchemaLiteral literal : children(value)) {
    choice.options.push_back({literal});
    none.push_back(negated(literal));
  }
  choice.negated_options.push_back(std::move(none));
  node_.choices.push_back(std::move(choice));
}

void SchemaKeywordReader::one_of(const Json& value) {
  node_.one_of = children(value);
  node_.one_of_position = position_;
  if (node_.one_of.empty()) malformed("at least one schema");
}

void SchemaKeywordReader::condition(const Json& value) {
  const Json* then = sibling("then");
  const Json* otherwise = sibling("else");
  if (then == nullptr && otherwise == nullptr) return;
  const SchemaLiteral test = child(value);
  const SchemaLiteral if_true = then == nullptr ? document_.anything() : child(*then);
  const SchemaLiteral if_false = otherwise == nullptr ? document_.anything() : child(*otherwise);
  node_.choices.push_back(
      {.position = position_,
       .is_conditional = true,
       .options = {{test, if_true}, {negated(test), if_false}},
       .negated_options = {{test, negated(if_true)}, {negated(test), negated(if_false)}}});
}

}  // namespace

void read_schema_keywords(SchemaDocument& document, SchemaNode& node) {
  SchemaKeywordReader(document, node).read();
}

}  // namespace paceline
