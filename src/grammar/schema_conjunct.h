// SchemaConjunct is what a conjunction of schemas asks of each kind of value, with nothing left to
// choose.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/schema_node.h"
#include "grammar/text_form.h"

namespace paceline {

struct SchemaNumberRules {
  std::optional<SchemaNumberLimit> minimum;
  std::optional<SchemaNumberLimit> maximum;
  bool integers_only = false;
  bool no_points = false;
  bool fractions_only = false;
  bool has_point = false;
  std::vector<std::string> multiples;
  std::vector<std::string> non_multiples;
  std::optional<std::vector<std::string>> values;  // sorted; one of them
  std::vector<std::string> excluded;               // none of them

  bool is_any() const;
};

struct SchemaStringRules {
  uint32_t min_length = 0;
  uint32_t max_length = kUnbounded;
  std::vector<RegexId> all;   // sorted
  std::vector<RegexId> none;  // sorted
  std::optional<std::vector<std::string_view>> values;
  std::vector<std::string_view> excluded;

  bool is_any() const;
};

struct SchemaArrayRules {
  std::vector<SchemaSet> prefix;
  SchemaSet rest;
  uint32_t min = 0;
  uint32_t max = kUnbounded;
  const SchemaNode* unique = nullptr;  // whose items must differ
  std::vector<SchemaContains> contains;

  const SchemaSet& item(size_t index) const { return index < prefix.size() ? prefix[index] : rest; }
  bool operator==(const SchemaArrayRules&) const = default;
};

// A schema with properties, patterns or additional ones.
struct SchemaObjectPart {
  const SchemaNode* node = nullptr;
  bool is_conditional = false;  // in `if` or `dependencies`: it doesn't place what others declare
  bool operator==(const SchemaObjectPart&) const = default;
};

struct SchemaObjectRules {
  std::vector<SchemaObjectPart> parts;  // by where they stand
  std::vector<std::string_view> required;
  uint32_t min = 0;
  uint32_t max = kUnbounded;
  SchemaSet names;
  std::vector<const SchemaPropertyExists*> exists;

  bool operator==(const SchemaObjectRules&) const = default;
};

struct SchemaConjunct {
  JsonKinds kinds = kAllKinds;
  SchemaNumberRules numbers;
  SchemaStringRules strings;
  SchemaArrayRules arrays;
  SchemaObjectRules objects;
  std::vector<std::pair<const SchemaNode*, const SchemaRefusal*>> refusals;
  // Found at the end, where these kinds are left.
  RegexId number_language = RegexSet::kNothing;
  RegexId string_language = RegexSet::kNothing;  // between the quotes

  // Adds the node's own rules: neither its all_of nor its choices.
  void absorb(const SchemaNode& node);

 private:
  void absorb_values(const SchemaValues& values);
  void absorb_items(const SchemaNode& node);
};

// The scalars that most schemas need, each made once.
class SchemaScalars {
 public:
  SchemaScalars(RegexSet& regexes, TextForm form, JsonTexts texts)
      : regexes_(regexes), form_(form), texts_(texts) {}

  RegexId character();  // of a string, in the form
  RegexId string();
  RegexId number();
  RegexId decimal();
  RegexId integer();  // by value
  RegexId digits();   // integers without a fraction
  RegexSet& regexes() { return regexes_; }
  TextForm form() const { return form_; }
  JsonTexts texts() const { return texts_; }

 private:
  RegexSet& regexes_;
  TextForm form_;
  JsonTexts texts_;
  std::optional<RegexId> character_, string_, number_, decimal_, integer_, digits_;
};

// Decimals of json_decimal, or json_number where there are no rules. Of JsonTexts::written, numbers
// that can only be integers are digits, and listed ones have one text each.
RegexId schema_number_language(SchemaScalars& scalars, const SchemaNumberRules& rules);
// What stands between the quotes, in the form of the scalars.
RegexId schema_string_language(SchemaScalars& scalars, const SchemaStringRules& rules);
// One of the texts, which are sorted and unique: common beginnings are read once.
RegexId schema_any_of_texts(RegexSet& regexes, std::span<const std::string_view> texts,
                            TextForm form = TextForm::json);
// The text as it stands in the form; of JSON's forms, one of them.
std::string schema_string_body(std::string_view text, TextForm form = TextForm::json);

}  // namespace paceline
