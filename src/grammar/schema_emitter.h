// SchemaEmitter writes sets of schemas as rules of a grammar.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/schema_normaliser.h"

namespace paceline {

// Blanks stand in front of each terminal, so none is empty and no text ends in blanks. Only those
// before an object's members stand behind the bracket or the comma: the names of all properties
// that may follow begin at one place.
class SchemaEmitter {
 public:
  explicit SchemaEmitter(GrammarBuilder& builder);
  SchemaEmitter(GrammarBuilder& builder, SchemaDocument& document);

  // The rule of the texts of the values in the set. Error unsupported when a keyword that they obey
  // can't be enforced.
  RuleId rule(const SchemaSet& set);
  // Any JSON value, and any object.
  RuleId any_value();
  RuleId any_object();
  // Writes the rules that have been asked for.
  void finish();
  // Whether objects may have names that aren't declared, which the grammar itself lets repeat.
  bool has_open_names() const { return has_open_names_; }
  void set_open_names() { has_open_names_ = true; }

  // A state of the rule that is being written.
  StateId add_state() { return builder_.add_state(current_rule_); }
  // An edge that reads `lead` and a value in the set.
  void add_value(StateId from, RegexId lead, const SchemaSet& set, StateId to,
                 GrammarBuilder::Counting counting = {});
  // Whether the set has any values.
  bool has_values(const SchemaSet& set);
  // A text for each value in the set, if these are few scalars that the schema lists.
  std::optional<std::vector<RegexId>> few_values(const SchemaSet& set);
  // Blanks and these bytes, each after blanks.
  RegexId punctuation(std::string_view bytes);
  RegexId blanks() const { return blanks_; }
  // What stands before a member: a comma or the opening bracket, between blanks.
  RegexId before_member(std::string_view byte) {
    return regexes().concat(punctuation(byte), blanks_);
  }

  GrammarBuilder& builder() { return builder_; }
  RegexSet& regexes() { return builder_.regexes(); }
  SchemaNormaliser& normaliser() { return *normaliser_; }
  SchemaDocument& document() { return *document_; }
  SchemaScalars& scalars() { return scalars_; }

 private:
  // The alternatives of a set by kind.
  struct Form {
    RegexId scalars = RegexSet::kNothing;
    std::vector<const SchemaArrayRules*> arrays;
    std::vector<const SchemaObjectRules*> objects;
  };
  const Form& form(const SchemaSet& canonical_set);
  RegexId scalars_of(const SchemaConjunct& conjunct);
  void check_refusals(const SchemaConjunct& conjunct);
  const SchemaArrayRules& enforced_arrays(const SchemaConjunct& conjunct);
  bool can_be_unique(const SchemaArrayRules& arrays);
  void emit(RuleId rule, const Form& form);
  StateId emit_any_members(RuleId rule, StateId end);
  RegexId any_scalar();

  GrammarBuilder& builder_;
  SchemaDocument* document_ = nullptr;
  std::optional<SchemaNormaliser> normaliser_;
  SchemaScalars scalars_;
  JsonSpacing spacing_;
  RegexId blanks_{};
  std::deque<SchemaArrayRules> wider_arrays_;  // than those of conjuncts
  std::map<SchemaSet, Form> forms_;
  std::map<SchemaSet, RuleId> rules_;
  std::vector<std::pair<RuleId, const Form*>> pending_;
  std::map<std::pair<RuleId, StateId>, StateId> before_calls_;
  std::optional<RuleId> any_value_;
  RuleId current_rule_{};
  bool has_open_names_ = false;
};

// What follows the opening bracket, which leads to `from`; the closing one leads to `to`.
void emit_schema_array(SchemaEmitter& emitter, const SchemaArrayRules& rules, StateId from,
                       StateId to);
void emit_schema_object(SchemaEmitter& emitter, const SchemaObjectRules& rules, StateId from,
                        StateId to);

}  // namespace paceline
