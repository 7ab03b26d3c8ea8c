// SchemaNode is one schema object with its keywords read; SchemaSet a conjunction of such nodes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "grammar/regex_set.h"

namespace paceline {

// What becomes of a part of a schema that can't be enforced.
enum class SchemaRigor : uint8_t {
  best_effort,  // it is left out, with a warning: every value that the schema accepts stays
                // possible
  exact,        // it is an error
  strict,       // so is what would only be an annotation, as an unknown `format`
};

// Kinds of JSON values as bits.
using JsonKinds = uint8_t;
inline constexpr JsonKinds kNullKind = 1, kFalseKind = 2, kTrueKind = 4, kNumberKind = 8,
                           kStringKind = 16, kArrayKind = 32, kObjectKind = 64, kAllKinds = 127;

enum class SchemaNodeId : uint32_t {};

// A node, or its negation.
enum class SchemaLiteral : uint32_t {};

inline SchemaLiteral literal_of(SchemaNodeId node) {
  return SchemaLiteral{static_cast<uint32_t>(node) << 1};
}
inline SchemaLiteral negated(SchemaLiteral literal) {
  return SchemaLiteral{static_cast<uint32_t>(literal) ^ 1};
}
inline bool is_negated(SchemaLiteral literal) { return (static_cast<uint32_t>(literal) & 1) != 0; }
inline SchemaNodeId node_of(SchemaLiteral literal) {
  return SchemaNodeId{static_cast<uint32_t>(literal) >> 1};
}

// All of them hold; nothing in it: any value. Where it is a key, each is in it once; the order is
// that of properties.
using SchemaSet = std::vector<SchemaLiteral>;

// Where a keyword stands among its siblings. The order of properties follows from it.
using SchemaPosition = uint32_t;

// One of the options holds.
struct SchemaChoice {
  SchemaPosition position = 0;
  bool is_conditional = false;  // of `if`, or of a dependency
  std::vector<SchemaSet> options;
  std::vector<SchemaSet> negated_options;  // of the choice's negation
};

struct SchemaNumberLimit {
  std::string decimal;
  long double value = 0;
  bool is_excluded = false;
};

// The values of an enum or a const.
struct SchemaValues {
  JsonKinds constants = 0;                // of null, false and true
  std::vector<std::string> numbers;       // plain decimals, sorted
  std::vector<std::string_view> strings;  // sorted
  SchemaSet containers;                   // a node for each array and object
  SchemaChoice choice;                    // where there are containers: which it is
};

// At least `min` items from index `from` on are in `items`.
struct SchemaContains {
  SchemaSet items;
  uint32_t from = 0;
  uint32_t min = 1;
  bool operator==(const SchemaContains&) const = default;
};

struct SchemaNode;

// Some property has such a name and such a value.
struct SchemaPropertyExists {
  const SchemaNode* undeclared_in = nullptr;  // the name is neither in its properties nor patterns
  std::optional<RegexId> pattern;             // the name matches
  SchemaSet name;
  SchemaSet value;
};

// A keyword that can't be enforced. It matters only where values of these kinds are left.
struct SchemaRefusal {
  JsonKinds kinds = kAllKinds;
  std::string_view keyword;
  std::string reason;
};

struct SchemaNode {
  const Json* json = nullptr;  // of a made one: what it was made of
  uint32_t resource_index = 0;
  bool is_read = false;

  JsonKinds kinds = kAllKinds;
  bool integers_only = false;
  bool no_points = false;  // integers are written without a fraction, as draft 4 defines them
  bool fractions_only = false;
  bool has_point = false;            // written with a fraction, perhaps of zeros
  std::vector<SchemaValues> values;  // in each of them
  SchemaValues excluded;             // `containers` are not used

  std::optional<SchemaNumberLimit> minimum;
  std::optional<SchemaNumberLimit> maximum;
  std::vector<std::string> multiples;  // of each
  std::vector<std::string> non_multiples;

  uint32_t min_length = 0;
  uint32_t max_length = kUnbounded;
  std::vector<RegexId> strings;  // bodies in the form of JSON
  std::vector<RegexId> excluded_strings;

  std::vector<SchemaLiteral> prefix_items;
  std::optional<SchemaLiteral> items;
  uint32_t min_items = 0;
  uint32_t max_items = kUnbounded;
  bool has_unique_items = false;
  std::vector<SchemaContains> contains;

  SchemaPosition properties_position = 0;
  std::vector<std::pair<std::string_view, SchemaLiteral>> properties;
  std::map<std::string_view, SchemaLiteral> property_index;  // where there are many
  std::vector<std::pair<RegexId, SchemaLiteral>> patterns;
  std::optional<SchemaLiteral> additional;
  std::vector<std::string_view> required;
  uint32_t min_properties = 0;
  uint32_t max_properties = kUnbounded;
  std::optional<SchemaLiteral> property_names;
  std::vector<SchemaPropertyExists> exists;

  SchemaSet all_of;
  std::vector<SchemaPosition> all_of_positions;
  std::vector<SchemaChoice> choices;
  std::vector<SchemaLiteral> one_of;
  SchemaPosition one_of_position = 0;
  std::vector<SchemaRefusal> refusals;

  std::optional<SchemaLiteral> property(std::string_view name) const;
  bool has_object_rules() const {
    return !properties.empty() || !patterns.empty() || additional.has_value();
  }
  bool has_item_rules() const { return !prefix_items.empty() || items.has_value(); }
};

void add_to_schema_set(SchemaSet& set, SchemaLiteral literal);

// The scalars among the values.
SchemaValues schema_values(std::span<const Json> values);
// The number as a decimal without an exponent; equal numbers are equal texts.
std::string plain_decimal(const Json& number);
SchemaNumberLimit schema_number_limit(const Json& number, bool is_excluded);

}  // namespace paceline
