#include "grammar/schema_normaliser.h"

#include <fmt/format.h>

#include <algorithm>

#include "grammar/json_text.h"
#include "grammar/schema_negation.h"

namespace paceline {
namespace {

constexpr size_t kMaxConjuncts = 500;          // of one set
constexpr size_t kMaxNormaliserWork = 50'000;  // literals that are absorbed, in all
constexpr size_t kMaxReferenceDepth = 400;     // references and applicators in one place
constexpr size_t kMaxProofDepth = 12;          // of values in each other, in a proof of emptiness

[[noreturn]] void too_many_alternatives() {
  throw Error(
      ErrorCode::exhausted,
      fmt::format("schema: too complex: more than {} alternatives of one value", kMaxConjuncts));
}

bool contains_literal(const SchemaSet& sorted, SchemaLiteral literal) {
  return std::binary_search(sorted.begin(), sorted.end(), literal);
}

bool has_own_rules(const SchemaNode& node) {
  return node.kinds != kAllKinds || !node.values.empty() || node.excluded.constants != 0 ||
         !node.excluded.numbers.empty() || !node.excluded.strings.empty() || node.minimum ||
         node.maximum || !node.multiples.empty() || !node.non_multiples.empty() ||
         node.integers_only || node.fractions_only || node.has_point || node.min_length > 0 ||
         node.max_length != kUnbounded || !node.strings.empty() || !node.excluded_strings.empty() ||
         node.has_item_rules() || node.min_items > 0 || node.max_items != kUnbounded ||
         node.has_unique_items || !node.contains.empty() || node.has_object_rules() ||
         !node.required.empty() || node.min_properties > 0 || node.max_properties != kUnbounded ||
         node.property_names || !node.exists.empty() || !node.choices.empty() ||
         !node.one_of.empty() || !node.refusals.empty();
}

}  // namespace

// A way to the alternatives: what was absorbed, and what is left to choose.
struct SchemaNormaliser::Branch {
  struct Pending {
    SchemaLiteral literal{};
    Place place;
  };
  struct Choice {
    const std::vector<SchemaSet>* options = nullptr;
    Place place;
  };
  struct OneOf {
    const std::vector<SchemaLiteral>* branches = nullptr;
    Place place;
  };

  SchemaConjunct conjunct;
  std::vector<Place> part_places;  // of conjunct.objects.parts
  std::vector<Pending> pending;
  SchemaSet absorbed;  // sorted
  std::vector<Choice> choices;
  std::vector<OneOf> one_ofs;

  void add(const SchemaSet& set, const Place& place) {
    for (const SchemaLiteral literal : set) {
      pending.push_back({literal, place});
      pending.back().place.positions.push_back(static_cast<SchemaPosition>(pending.size()));
    }
  }
};

void SchemaNormaliser::count_work(size_t amount) {
  work_ += amount;
  if (work_ > kMaxNormaliserWork) {
    throw Error(ErrorCode::exhausted,
                fmt::format("schema: too complex: its alternatives take more than {} steps",
                            kMaxNormaliserWork));
  }
}

bool SchemaNormaliser::discriminators_differ(const Discriminators& a, const Discriminators& b) {
  return std::any_of(a.begin(), a.end(), [&](const auto& one) {
    const auto other = b.find(one.first);
    if (other == b.end()) return false;
    const SchemaValues& left = *one.second;
    const SchemaValues& right = *other->second;
    const auto are_apart = [](const auto& x, const auto& y) {
      return std::none_of(x.begin(), x.end(), [&](const auto& value) {
        return std::binary_search(y.begin(), y.end(), value);
      });
    };
    return (left.constants & right.constants) == 0 && are_apart(left.numbers, right.numbers) &&
           are_apart(left.strings, right.strings);
  });
}

// A schema that leads back to itself without a value in between means nothing.
void SchemaNormaliser::check_loops(SchemaLiteral literal, size_t depth) {
  const SchemaNodeId id = node_of(literal);
  Visit& visit = visits_[id];
  if (visit == Visit::done) return;
  const SchemaNode& node = document_.node(id);
  if (visit == Visit::open) {
    document_.fail(ErrorCode::invalid, *node.json, "$ref",
                   "leads back to this schema with nothing in between");
  }
  if (depth > kMaxReferenceDepth) {
    document_.fail(ErrorCode::exhausted, *node.json, "$ref",
                   fmt::format("more than {} schemas refer to each other", kMaxReferenceDepth));
  }
  visit = Visit::open;
  for (const SchemaLiteral child : node.all_of) check_loops(child, depth + 1);
  for (const SchemaChoice& choice : node.choices) {
    for (const SchemaSet& option : choice.options) {
      for (const SchemaLiteral child : option) check_loops(child, depth + 1);
    }
  }
  for (const SchemaLiteral child : node.one_of) check_loops(child, depth + 1);
  visits_[id] = Visit::done;
}

void SchemaNormaliser::flatten(SchemaLiteral literal, Flat& flat, size_t depth) {
  if (literal == document_.anything() || !flat.seen.insert(literal).second) return;
  flat.is_contradictory |= literal == document_.nothing() || flat.seen.contains(negated(literal));
  if (flat.is_contradictory) return;
  check_loops(literal, depth);
  const SchemaNode& node = document_.node(node_of(literal));
  const bool is_simple = !has_own_rules(node);
  if (is_simple && !is_negated(literal)) {
    for (const SchemaLiteral child : node.all_of) flatten(child, flat, depth + 1);
  } else if (is_simple && node.all_of.size() == 1) {
    flatten(negated(node.all_of[0]), flat, depth + 1);
  } else if (is_simple && node.all_of.empty()) {
    flat.is_contradictory = true;
  } else {
    flat.set.push_back(literal);
  }
}

SchemaSet SchemaNormaliser::canonical(const SchemaSet& set) {
  Flat flat;
  for (const SchemaLiteral literal : set) flatten(literal, flat, 0);
  return flat.is_contradictory ? SchemaSet{document_.nothing()} : std::move(flat.set);
}

JsonKinds SchemaNormaliser::possible_kinds(SchemaLiteral literal, size_t depth) {
  if (literal == document_.nothing()) return 0;
  if (is_negated(literal) || depth > kMaxProofDepth) return kAllKinds;
  const SchemaNodeId id = node_of(literal);
  if (const auto found = possible_kinds_.find(id); found != possible_kinds_.end()) {
    return found->second;
  }
  const SchemaNode& node = document_.node(id);
  JsonKinds kinds = node.kinds;
  for (const SchemaValues& values : node.values) {
    JsonKinds allowed = values.constants;
    if (!values.numbers.empty()) allowed |= kNumberKind;
    if (!values.strings.empty()) allowed |= kStringKind;
    if (!values.containers.empty()) allowed |= kArrayKind | kObjectKind;
    kinds &= allowed;
  }
  kinds &= possible_kinds(node.all_of, depth + 1);
  for (const SchemaChoice& choice : node.choices) {
    JsonKinds allowed = 0;
    for (const SchemaSet& option : choice.options) allowed |= possible_kinds(option, depth + 1);
    kinds &= allowed;
  }
  possible_kinds_.emplace(id, kinds);
  return kinds;
}

JsonKinds SchemaNormaliser::possible_kinds(const SchemaSet& set, size_t depth) {
  JsonKinds kinds = kAllKinds;
  for (const SchemaLiteral literal : set) kinds &= possible_kinds(literal, depth);
  return kinds;
}

const std::vector<SchemaSet>& SchemaNormaliser::negation(SchemaNodeId id) {
  const auto found = negations_.find(id);
  if (found != negations_.end()) return found->second;
  return negations_.emplace(id, negation_options(document_, id)).first->second;
}

SchemaLiteral SchemaNormaliser::kinds_literal(JsonKinds kinds) {
  if (kinds == kAllKinds) return document_.anything();
  const auto found = kinds_literals_.find(kinds);
  if (found != kinds_literals_.end()) return found->second;
  return kinds_literals_.emplace(kinds, document_.add({.kinds = kinds})).first->second;
}

bool SchemaNormaliser::are_disjoint(SchemaLiteral a, SchemaLiteral b, JsonKinds kinds) {
  const JsonKinds common = possible_kinds(a) & possible_kinds(b) & kinds;
  if (common == 0) return true;
  if (common == kObjectKind && discriminators_differ(discriminators(a), discriminators(b))) {
    return true;
  }
  try {
    return is_impossible({a, b, kinds_literal(kinds)});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::exhausted || work_ > kMaxNormaliserWork) throw;
    return false;
  }
}

// Properties that must be there and have one of some strings.
const SchemaNormaliser::Discriminators& SchemaNormaliser::discriminators(SchemaLiteral branch) {
  const auto [entry, is_new] = discriminators_.try_emplace(branch);
  if (!is_new) return entry->second;
  for (const SchemaLiteral literal : canonical({branch})) {
    if (is_negated(literal)) continue;
    const SchemaNode& node = document_.node(node_of(literal));
    for (const std::string_view name : node.required) {
      const auto value = node.property(name);
      for (const SchemaLiteral part : canonical(value ? SchemaSet{*value} : SchemaSet{})) {
        if (is_negated(part) || part == document_.nothing()) continue;
        for (const SchemaValues& values : document_.node(node_of(part)).values) {
          if (values.containers.empty()) entry->second.emplace(name, &values);
        }
      }
    }
  }
  return entry->second;
}

// Which of the branches it is; of branches that may overlap also that the others don't hold. Only
// values of `kinds` matter.
const std::vector<SchemaSet>& SchemaNormaliser::one_of_options(
    const std::vector<SchemaLiteral>& branches, JsonKinds kinds) {
  const auto key = std::pair(&branches, kinds);
  if (const auto found = one_of_options_.find(key); found != one_of_options_.end()) {
    return found->second;
  }
  if (branches.size() > kMaxConjuncts) too_many_alternatives();
  std::vector<SchemaSet> options;
  for (const SchemaLiteral literal : branches) options.push_back({literal});
  for (size_t i = 0; i < branches.size(); ++i) {
    for (size_t k = i + 1; k < branches.size(); ++k) {
      if (are_disjoint(branches[i], branches[k], kinds)) continue;
      options[i].push_back(negated(branches[k]));
      options[k].push_back(negated(branches[i]));
    }
  }
  return one_of_options_.emplace(key, std::move(options)).first->second;
}

// False: it can't hold.
bool SchemaNormaliser::absorb(Branch& branch, SchemaLiteral literal, const Place& place) {
  if (literal == document_.anything()) return true;
  if (literal == document_.nothing()) return false;
  const auto at = std::lower_bound(branch.absorbed.begin(), branch.absorbed.end(), literal);
  if (at != branch.absorbed.end() && *at == literal) return true;
  if (contains_literal(branch.absorbed, negated(literal))) return false;
  branch.absorbed.insert(at, literal);
  count_work(1);
  check_loops(literal, 0);
  if (is_negated(literal)) {
    const std::vector<SchemaSet>& options = negation(node_of(literal));
    if (options.empty()) return false;
    if (options.size() == 1) {
      branch.add(options[0], place);
    } else {
      branch.choices.push_back({&options, place});
    }
    return true;
  }
  absorb_node(branch, document_.node(node_of(literal)), place);
  return branch.conjunct.kinds != 0;
}

void SchemaNormaliser::absorb_node(Branch& branch, const SchemaNode& node, const Place& place) {
  const auto place_of = [&](SchemaPosition position, SchemaPosition index = 0) {
    Place below = place;
    below.positions.push_back(position);
    below.positions.push_back(index);
    return below;
  };
  branch.conjunct.absorb(node);
  if (branch.part_places.size() < branch.conjunct.objects.parts.size()) {
    branch.part_places.push_back(place_of(node.properties_position));
  }
  for (size_t i = 0; i < node.all_of.size(); ++i) {
    const SchemaPosition position = i < node.all_of_positions.size() ? node.all_of_positions[i] : 0;
    branch.pending.push_back({node.all_of[i], place_of(position, static_cast<SchemaPosition>(i))});
  }
  for (const SchemaValues& values : node.values) {
    if (values.containers.empty()) continue;
    branch.choices.push_back({&values.choice.options, place_of(values.choice.position)});
  }
  for (const SchemaChoice& choice : node.choices) {
    branch.choices.push_back({&choice.options, place_of(choice.position)});
    branch.choices.back().place.is_conditional |= choice.is_conditional;
  }
  if (!node.one_of.empty()) {
    branch.one_ofs.push_back({&node.one_of, place_of(node.one_of_position)});
  }
}

bool SchemaNormaliser::absorb_pending(Branch& branch) {
  for (size_t i = 0; i < branch.pending.size(); ++i) {
    const Branch::Pending next = branch.pending[i];
    if (!absorb(branch, next.literal, next.place)) return false;
  }
  branch.pending.clear();
  drop_impossible_kinds(branch.conjunct);
  return branch.conjunct.kinds != 0;
}

// A quick test.
bool SchemaNormaliser::can_hold(const Branch& branch, const SchemaSet& option) {
  if ((possible_kinds(option) & branch.conjunct.kinds) == 0) return false;
  return std::none_of(option.begin(), option.end(), [&](SchemaLiteral literal) {
    return contains_literal(branch.absorbed, negated(literal));
  });
}

SchemaNormaliser::Choosing SchemaNormaliser::choose(Branch& branch, Options& options) {
  for (const Branch::OneOf& one_of : branch.one_ofs) {
    branch.choices.push_back(
        {&one_of_options(*one_of.branches, branch.conjunct.kinds), one_of.place});
  }
  branch.one_ofs.clear();
  std::optional<size_t> best;
  for (size_t i = 0; i < branch.choices.size();) {
    std::vector<SchemaSet> possible;
    bool holds = false;
    for (const SchemaSet& option : *branch.choices[i].options) {
      if (!can_hold(branch, option)) continue;
      if (!possible.empty() && possible.back() == option) continue;
      holds |= std::all_of(option.begin(), option.end(), [&](SchemaLiteral literal) {
        return literal == document_.anything() || contains_literal(branch.absorbed, literal);
      });
      possible.push_back(option);
    }
    if (possible.empty()) return Choosing::dead;
    if (holds) {
      branch.choices.erase(branch.choices.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    if (!best || possible.size() < options.sets.size()) {
      best = i;
      options = {std::move(possible), branch.choices[i].place};
    }
    ++i;
  }
  if (!best) return Choosing::finished;
  branch.choices.erase(branch.choices.begin() + static_cast<std::ptrdiff_t>(*best));
  return Choosing::goes_on;
}

// Sorts the parts of objects by where they stand, as if references were what they name.
SchemaConjunct SchemaNormaliser::finished(Branch branch) {
  std::vector<SchemaObjectPart>& parts = branch.conjunct.objects.parts;
  std::vector<std::pair<Place, const SchemaNode*>> placed;
  for (size_t i = 0; i < parts.size(); ++i) {
    placed.emplace_back(std::move(branch.part_places[i]), parts[i].node);
  }
  std::stable_sort(placed.begin(), placed.end(), [](const auto& a, const auto& b) {
    return a.first.positions < b.first.positions;
  });
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i] = {placed[i].second, placed[i].first.is_conditional};
  }
  drop_impossible_scalars(branch.conjunct);
  return std::move(branch.conjunct);
}

std::vector<SchemaConjunct> SchemaNormaliser::expand(const SchemaSet& set) {
  std::vector<SchemaConjunct> found;
  std::vector<Branch> open(1);
  open[0].add(set, {});
  while (!open.empty()) {
    Branch branch = std::move(open.back());
    open.pop_back();
    if (!absorb_pending(branch)) continue;
    Options options;
    const Choosing choosing = choose(branch, options);
    if (choosing == Choosing::dead) continue;
    if (choosing == Choosing::finished) {
      found.push_back(finished(std::move(branch)));
      if (found.back().kinds == 0) found.pop_back();
      if (found.size() > kMaxConjuncts) {
        too_many_alternatives();
      }
      continue;
    }
    count_work(options.sets.size());
    for (size_t i = options.sets.size(); i-- > 0;) {  // the first one is next
      open.push_back(i == 0 ? std::move(branch) : branch);
      open.back().add(options.sets[i], options.place);
    }
  }
  return found;
}

const std::vector<SchemaConjunct>& SchemaNormaliser::conjuncts(const SchemaSet& set) {
  if (const auto found = conjuncts_.find(set); found != conjuncts_.end()) return found->second;
  in_progress_.insert(set);
  std::vector<SchemaConjunct> found = expand(set);
  in_progress_.erase(set);
  return conjuncts_.emplace(set, std::move(found)).first->second;
}

// Proves that no value obeys the set. A set that is being examined already counts as possible,
// since a cycle proves nothing.
bool SchemaNormaliser::is_impossible(const SchemaSet& any_set) {
  SchemaSet set = canonical(any_set);
  std::sort(set.begin(), set.end());
  if (set.empty()) return false;
  if (set[0] == document_.nothing()) return true;
  if (const auto found = impossible_.find(set); found != impossible_.end()) return found->second;
  if (possible_kinds(set) == 0) return true;
  if (depth_ >= kMaxProofDepth || in_progress_.contains(set)) return false;
  impossible_[set] = false;
  ++depth_;
  bool result = false;
  try {
    result = conjuncts(set).empty();
  } catch (const Error&) {
    --depth_;
    in_progress_.erase(set);
    throw;
  }
  --depth_;
  impossible_[set] = result;
  return result;
}

SchemaSet SchemaNormaliser::value_set(const SchemaObjectRules& rules, std::string_view name) {
  SchemaSet set;
  std::optional<std::string> body;
  for (const auto& [part, is_conditional] : rules.parts) {
    bool is_declared = false;
    if (const auto literal = part->property(name)) {
      set.push_back(*literal);
      is_declared = true;
    }
    for (const auto& [pattern, literal] : part->patterns) {
      if (!body) body = schema_string_body(name, document_.form());
      if (!document_.regexes().matches(pattern, *body)) continue;
      set.push_back(literal);
      is_declared = true;
    }
    if (!is_declared && part->additional) set.push_back(*part->additional);
  }
  return set;
}

RegexId SchemaNormaliser::string_language(const SchemaSet& set) {
  SchemaSet strings = set;
  strings.push_back(kinds_literal(kStringKind));
  std::vector<RegexId> options;
  for (const SchemaConjunct& conjunct : conjuncts(canonical(strings))) {
    for (const auto& [node, refusal] : conjunct.refusals) {
      if ((refusal->kinds & kStringKind) == 0) continue;
      document_.leave_out(*node->json, refusal->keyword, refusal->reason);
    }
    options.push_back(conjunct.string_language);
  }
  return document_.regexes().alternation(options);
}

bool SchemaNormaliser::arrays_are_impossible(SchemaArrayRules& rules) {
  if (rules.contains.size() > 0 && rules.max == 0) return true;
  if (rules.min > rules.max) return true;
  for (size_t i = 0; i <= rules.prefix.size() && i < rules.min; ++i) {
    if (is_impossible(rules.item(i))) return true;
  }
  return false;
}

bool SchemaNormaliser::objects_are_impossible(const SchemaObjectRules& rules) {
  if (rules.min > rules.max || rules.required.size() > rules.max) return true;
  return std::any_of(rules.required.begin(), rules.required.end(),
                     [&](std::string_view name) { return is_impossible(value_set(rules, name)); });
}

void SchemaNormaliser::drop_impossible_kinds(SchemaConjunct& conjunct) {
  const auto drop = [&](JsonKinds kind) { conjunct.kinds &= static_cast<JsonKinds>(~kind); };
  const SchemaNumberRules& numbers = conjunct.numbers;
  if (numbers.minimum && numbers.maximum) {
    const bool excludes = numbers.minimum->is_excluded || numbers.maximum->is_excluded;
    const long double room = numbers.maximum->value - numbers.minimum->value;
    if (room < 0 || (excludes && room == 0)) drop(kNumberKind);
  }
  if (numbers.values && numbers.values->empty()) drop(kNumberKind);
  const SchemaStringRules& strings = conjunct.strings;
  if (strings.min_length > strings.max_length) drop(kStringKind);
  if (strings.values && strings.values->empty()) drop(kStringKind);
  if ((conjunct.kinds & kArrayKind) != 0 && arrays_are_impossible(conjunct.arrays)) {
    drop(kArrayKind);
  }
  if ((conjunct.kinds & kObjectKind) != 0 && objects_are_impossible(conjunct.objects)) {
    drop(kObjectKind);
  }
}

void SchemaNormaliser::drop_impossible_scalars(SchemaConjunct& conjunct) {
  RegexSet& regexes = document_.regexes();
  if ((conjunct.kinds & kNumberKind) != 0) {
    conjunct.number_language = schema_number_language(scalars_, conjunct.numbers);
    if (regexes.is_nothing(conjunct.number_language)) {
      conjunct.kinds &= static_cast<JsonKinds>(~kNumberKind);
    }
  }
  if ((conjunct.kinds & kStringKind) != 0) {
    conjunct.string_language = schema_string_language(scalars_, conjunct.strings);
    if (regexes.is_nothing(conjunct.string_language)) {
      conjunct.kinds &= static_cast<JsonKinds>(~kStringKind);
    }
  }
}

}  // namespace paceline
