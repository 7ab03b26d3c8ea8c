// SchemaNormaliser finds the alternatives of a conjunction of schemas: its disjunctive normal form.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "grammar/schema_conjunct.h"
#include "grammar/schema_document.h"

namespace paceline {

class SchemaNormaliser {
 public:
  SchemaNormaliser(SchemaDocument& document, SchemaScalars& scalars)
      : document_(document), scalars_(scalars) {}

  // The set as a key: without what says nothing, references replaced by what they name.
  SchemaSet canonical(const SchemaSet& set);
  // Of a canonical set. Kinds that no value can have are gone. Error exhausted when there are too
  // many.
  const std::vector<SchemaConjunct>& conjuncts(const SchemaSet& set);
  // Whether no value is in the set. False when that can't be shown.
  bool is_impossible(const SchemaSet& set);
  // What the rules of objects ask of the value of a property.
  SchemaSet value_set(const SchemaObjectRules& rules, std::string_view name);
  // The strings in the set, in the form of the document.
  RegexId string_language(const SchemaSet& set);

 private:
  // Where a schema stands.
  struct Place {
    std::vector<SchemaPosition> positions;  // of keywords and of their items, from the outside in
    bool is_conditional = false;            // in `if` or `dependencies`
  };
  struct Branch;
  struct Options {
    std::vector<SchemaSet> sets;
    Place place;
  };

  void check_loops(SchemaLiteral literal, size_t depth);
  struct Flat {
    SchemaSet set;
    std::set<SchemaLiteral> seen;
    bool is_contradictory = false;
  };
  void flatten(SchemaLiteral literal, Flat& flat, size_t depth);
  void count_work(size_t amount);
  JsonKinds possible_kinds(SchemaLiteral literal, size_t depth = 0);
  JsonKinds possible_kinds(const SchemaSet& set, size_t depth = 0);
  const std::vector<SchemaSet>& negation(SchemaNodeId id);
  SchemaLiteral kinds_literal(JsonKinds kinds);
  const std::vector<SchemaSet>& one_of_options(const std::vector<SchemaLiteral>& branches,
                                               JsonKinds kinds);
  using Discriminators = std::map<std::string_view, const SchemaValues*>;
  const Discriminators& discriminators(SchemaLiteral branch);
  static bool discriminators_differ(const Discriminators& a, const Discriminators& b);
  bool are_disjoint(SchemaLiteral a, SchemaLiteral b, JsonKinds kinds);

  std::vector<SchemaConjunct> expand(const SchemaSet& set);
  bool absorb_pending(Branch& branch);
  bool absorb(Branch& branch, SchemaLiteral literal, const Place& place);
  void absorb_node(Branch& branch, const SchemaNode& node, const Place& place);
  SchemaConjunct finished(Branch branch);
  // Whether nothing is left to choose; `options` are those of the choice with the fewest.
  enum class Choosing : uint8_t { finished, dead, goes_on };
  Choosing choose(Branch& branch, Options& options);
  bool can_hold(const Branch& branch, const SchemaSet& option);
  void drop_impossible_kinds(SchemaConjunct& conjunct);
  bool arrays_are_impossible(SchemaArrayRules& rules);
  bool objects_are_impossible(const SchemaObjectRules& rules);
  void drop_impossible_scalars(SchemaConjunct& conjunct);

  SchemaDocument& document_;
  SchemaScalars& scalars_;
  std::map<SchemaSet, std::vector<SchemaConjunct>> conjuncts_;
  std::set<SchemaSet> in_progress_;
  std::map<SchemaSet, bool> impossible_;
  size_t depth_ = 0;
  size_t work_ = 0;
  std::map<SchemaNodeId, JsonKinds> possible_kinds_;
  std::map<SchemaNodeId, std::vector<SchemaSet>> negations_;
  std::map<std::pair<const std::vector<SchemaLiteral>*, JsonKinds>, std::vector<SchemaSet>>
      one_of_options_;
  std::map<JsonKinds, SchemaLiteral> kinds_literals_;
  std::map<SchemaLiteral, Discriminators> discriminators_;
  enum class Visit : uint8_t { none, open, done };
  std::map<SchemaNodeId, Visit> visits_;
};

}  // namespace paceline
