#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <unordered_set>

#include "grammar/json_text.h"
#include "grammar/schema_emitter.h"

namespace paceline {
namespace {

using Counting = GrammarBuilder::Counting;

// Writes the properties in their order, then others.
class SchemaObjectEmitter {
 public:
  SchemaObjectEmitter(SchemaEmitter& emitter, const SchemaObjectRules& rules, StateId to)
      : emitter_(emitter), regexes_(emitter.regexes()), rules_(rules), to_(to) {}

  void emit(StateId from);

 private:
  struct Property {
    std::string_view name;
    SchemaSet set;
    bool is_required = false;
  };
  // Names that aren't declared and whose values are of one set.
  struct NameClass {
    RegexId names{};
    SchemaSet set;
  };
  // A property that must be there: one of these, or another name.
  struct Obligation {
    std::map<size_t, SchemaSet> witnesses;  // by property: what its value must be besides
    RegexId names = RegexSet::kNothing;     // of others
    SchemaSet value;
  };
  // How many properties there are, as far as it matters, and which obligations are open.
  struct Progress {
    uint32_t count = 0;
    uint32_t open = 0;
    auto operator<=>(const Progress&) const = default;
  };
  // A way to go on: with a property, or without.
  struct Step {
    bool takes = false;
    size_t class_index = 0;  // of a step over another name
    RegexId names{};
    SchemaSet set;
    Progress next;
  };
  // Where a text stands between two declared properties. A state is missing where no way leads to
  // an end.
  struct Spot {
    std::optional<StateId> before;  // a property follows: the comma or the bracket has been read
    std::optional<StateId> behind;  // of a property: a comma or the closing bracket follows
    bool may_close = false;         // none of the properties to come is required
  };
  using Layer = std::map<Progress, Spot>;

  void find_properties();
  void find_name_classes();
  void add_name_class(RegexId names, SchemaSet set);
  void split_by_patterns(RegexId names, std::span<const RegexId> patterns,
                         std::vector<RegexId>& matched);
  RegexId undeclared_names();
  void find_obligations();
  RegexId names_of(const SchemaPropertyExists& exists);
  bool find_counting();

  bool is_possible(RegexId names) { return !regexes_.is_nothing(names); }
  std::vector<Step> steps(size_t position, const Progress& at);
  void add_steps(std::vector<Step>& found, const Step& step, uint32_t open,
                 const std::vector<std::pair<uint32_t, const SchemaSet*>>& witnesses);
  std::vector<Step> other_steps(const Progress& at);
  bool may_end(const Progress& at) const;
  Progress after_one(const Progress& at) const;
  void find_live_ends(Layer& layer);
  void emit_layer(size_t position, Layer& layer, const Layer& next, StateId from);
  void emit_others(Layer& layer);
  void emit_behind(size_t position, Spot& spot);
  void add_close(StateId from, RegexId bracket);
  Counting counting_of(size_t position, const Step& step) const;
  Counting comma_counting(size_t position) const;
  RegexId key(RegexId quoted_name) {
    return regexes_.concat(quoted_name, emitter_.punctuation(":"));
  }

  SchemaEmitter& emitter_;
  RegexSet& regexes_;
  const SchemaObjectRules& rules_;
  StateId to_;
  std::vector<Property> properties_;
  std::vector<NameClass> others_;
  size_t num_name_classes_ = 0;  // before those with the same values are joined
  std::vector<Obligation> obligations_;
  std::vector<uint32_t> num_required_from_;  // by position
  uint32_t min_ = 0;
  uint32_t max_ = kUnbounded;
  uint32_t highest_count_ = 1;  // greater ones are equal to it
  bool counts_in_grammar_ = false;
};

// In the order of the parts; names that are only required come last. A condition doesn't place what
// is declared outside of conditions.
void SchemaObjectEmitter::find_properties() {
  std::unordered_set<std::string_view> known;
  std::unordered_set<std::string_view> declared;  // outside of conditions
  const std::unordered_set<std::string_view> required(rules_.required.begin(),
                                                      rules_.required.end());
  const auto add = [&](std::string_view name) {
    if (!known.insert(name).second) return;
    properties_.push_back({.name = name,
                           .set = emitter_.normaliser().value_set(rules_, name),
                           .is_required = required.contains(name)});
  };
  const auto is_conditional = [](const SchemaObjectPart& part) { return part.is_conditional; };
  if (std::any_of(rules_.parts.begin(), rules_.parts.end(), is_conditional)) {
    for (const auto& part : rules_.parts) {
      if (part.is_conditional) continue;
      for (const auto& property : part.node->properties) declared.insert(property.first);
    }
  }
  for (const auto& part : rules_.parts) {
    for (const auto& property : part.node->properties) {
      if (!part.is_conditional || !declared.contains(property.first)) add(property.first);
    }
  }
  for (const std::string_view name : rules_.required) add(name);
}

RegexId SchemaObjectEmitter::undeclared_names() {
  std::vector<std::string_view> declared;
  for (const Property& property : properties_) declared.push_back(property.name);
  std::sort(declared.begin(), declared.end());
  const RegexId names = emitter_.normaliser().string_language(rules_.names);
  if (declared.empty()) return names;
  return regexes_.intersection(names, regexes_.complement(schema_any_of_texts(regexes_, declared)));
}

void SchemaObjectEmitter::add_name_class(RegexId names, SchemaSet set) {
  set = emitter_.normaliser().canonical(set);
  if (!emitter_.has_values(set)) return;
  const auto known = std::find_if(others_.begin(), others_.end(),
                                  [&](const NameClass& other) { return other.set == set; });
  if (known != others_.end()) {
    known->names = regexes_.alternation(known->names, names);
  } else {
    others_.push_back({names, std::move(set)});
  }
}

// `matched` are the patterns that the names match; each of `patterns` they may match or not.
void SchemaObjectEmitter::split_by_patterns(RegexId names, std::span<const RegexId> patterns,
                                            std::vector<RegexId>& matched) {
  constexpr size_t kMostClasses = 100;
  if (!patterns.empty()) {
    const RegexId in = regexes_.intersection(names, patterns[0]);
    const RegexId out = regexes_.intersection(names, regexes_.complement(patterns[0]));
    if (is_possible(in)) {
      matched.push_back(patterns[0]);
      split_by_patterns(in, patterns.subspan(1), matched);
      matched.pop_back();
    }
    if (is_possible(out)) split_by_patterns(out, patterns.subspan(1), matched);
    return;
  }
  SchemaSet set;
  for (const auto& [part, is_conditional] : rules_.parts) {
    bool is_matched = false;
    for (const auto& [pattern, literal] : part->patterns) {
      if (std::find(matched.begin(), matched.end(), pattern) == matched.end()) continue;
      set.push_back(literal);
      is_matched = true;
    }
    if (!is_matched && part->additional) set.push_back(*part->additional);
  }
  add_name_class(names, std::move(set));
  if (++num_name_classes_ > kMostClasses) {
    throw Error(
        ErrorCode::exhausted,
        fmt::format("schema: too complex: names of more than {} kinds in \"patternProperties\"",
                    kMostClasses));
  }
}

void SchemaObjectEmitter::find_name_classes() {
  if (rules_.max <= rules_.required.size()) return;
  std::vector<RegexId> patterns;
  bool is_closed = false;
  for (const auto& [part, is_conditional] : rules_.parts) {
    for (const auto& [pattern, literal] : part->patterns) {
      if (std::find(patterns.begin(), patterns.end(), pattern) == patterns.end()) {
        patterns.push_back(pattern);
      }
    }
    is_closed |= part->patterns.empty() && part->additional == emitter_.document().nothing();
  }
  if (is_closed) return;
  const RegexId names = undeclared_names();
  std::vector<RegexId> matched;
  if (is_possible(names)) split_by_patterns(names, patterns, matched);
}

RegexId SchemaObjectEmitter::names_of(const SchemaPropertyExists& exists) {
  std::vector<RegexId> parts{emitter_.normaliser().string_language(exists.name)};
  if (exists.pattern) parts.push_back(*exists.pattern);
  if (exists.undeclared_in != nullptr) {
    std::vector<std::string_view> declared;
    for (const auto& property : exists.undeclared_in->properties) {
      declared.push_back(property.first);
    }
    std::sort(declared.begin(), declared.end());
    parts.push_back(regexes_.complement(schema_any_of_texts(regexes_, declared)));
    for (const auto& pattern : exists.undeclared_in->patterns) {
      parts.push_back(regexes_.complement(pattern.first));
    }
  }
  return regexes_.intersection(parts);
}

void SchemaObjectEmitter::find_obligations() {
  constexpr size_t kMostObligations = 8;
  for (const SchemaPropertyExists* exists : rules_.exists) {
    Obligation obligation;
    obligation.names = names_of(*exists);
    obligation.value = exists->value;
    for (size_t i = 0; i < properties_.size(); ++i) {
      if (!regexes_.matches(obligation.names, schema_string_body(properties_[i].name))) continue;
      obligation.witnesses.emplace(i, exists->value);
    }
    obligations_.push_back(std::move(obligation));
  }
  if (obligations_.size() > kMostObligations) {
    throw Error(ErrorCode::exhausted,
                fmt::format("schema: too complex: more than {} schemas that some property must "
                            "have, from \"not\" or \"oneOf\"",
                            kMostObligations));
  }
}

// False: there is no such object.
bool SchemaObjectEmitter::find_counting() {
  constexpr uint32_t kMostCounts = 64;  // that states keep
  num_required_from_.assign(properties_.size() + 1, 0);
  for (size_t i = properties_.size(); i-- > 0;) {
    num_required_from_[i] = num_required_from_[i + 1] + (properties_[i].is_required ? 1 : 0);
  }
  const auto num_possible = static_cast<uint32_t>(properties_.size());
  min_ = rules_.min > num_required_from_[0] ? rules_.min : 0;
  max_ = others_.empty() && num_possible <= rules_.max ? kUnbounded : rules_.max;
  if (others_.empty() && min_ > num_possible) return false;
  highest_count_ = std::max({1U, min_, max_ == kUnbounded ? 0 : max_});
  counts_in_grammar_ = highest_count_ > kMostCounts;
  if (!counts_in_grammar_) return true;
  highest_count_ = 1;
  if (obligations_.empty()) return true;
  throw Error(ErrorCode::exhausted,
              fmt::format("schema: too complex: more than {} properties are counted beside schemas "
                          "that some property must have, from \"not\" or \"oneOf\"",
                          kMostCounts));
}

SchemaObjectEmitter::Progress SchemaObjectEmitter::after_one(const Progress& at) const {
  return {std::min(at.count + 1, highest_count_), at.open};
}

bool SchemaObjectEmitter::may_end(const Progress& at) const {
  if (at.open != 0) return false;
  return counts_in_grammar_ || (at.count >= min_ && at.count <= max_);
}

// The step once for each choice of obligations that it meets.
void SchemaObjectEmitter::add_steps(
    std::vector<Step>& found, const Step& step, uint32_t open,
    const std::vector<std::pair<uint32_t, const SchemaSet*>>& witnesses) {
  for (uint32_t choice = 0; choice < 1U << witnesses.size(); ++choice) {
    Step one = step;
    one.next.open = open;
    for (size_t i = 0; i < witnesses.size(); ++i) {
      if ((choice >> i & 1) == 0) continue;
      const auto& [index, set] = witnesses[i];
      one.set.insert(one.set.end(), set->begin(), set->end());
      if (!step.takes) one.names = regexes_.intersection(one.names, obligations_[index].names);
      one.next.open &= ~(1U << index);
    }
    if (choice != 0 && emitter_.normaliser().is_impossible(one.set)) continue;
    if (choice != 0 && !step.takes && !is_possible(one.names)) continue;
    found.push_back(std::move(one));
  }
}

std::vector<SchemaObjectEmitter::Step> SchemaObjectEmitter::steps(size_t position,
                                                                  const Progress& at) {
  std::vector<Step> found;
  const Property& property = properties_[position];
  if (!property.is_required) found.push_back({.takes = false, .next = at});
  if (!counts_in_grammar_ && max_ != kUnbounded && at.count >= max_) return found;
  std::vector<std::pair<uint32_t, const SchemaSet*>> witnesses;
  for (uint32_t i = 0; i < obligations_.size(); ++i) {
    const auto witness = obligations_[i].witnesses.find(position);
    if ((at.open >> i & 1) == 0 || witness == obligations_[i].witnesses.end()) continue;
    witnesses.emplace_back(i, &witness->second);
  }
  add_steps(found, {.takes = true, .set = property.set, .next = after_one(at)}, at.open, witnesses);
  return found;
}

std::vector<SchemaObjectEmitter::Step> SchemaObjectEmitter::other_steps(const Progress& at) {
  std::vector<Step> found;
  if (!counts_in_grammar_ && max_ != kUnbounded && at.count >= max_) return found;
  std::vector<std::pair<uint32_t, const SchemaSet*>> witnesses;
  for (uint32_t i = 0; i < obligations_.size(); ++i) {
    if ((at.open >> i & 1) != 0) witnesses.emplace_back(i, &obligations_[i].value);
  }
  for (size_t i = 0; i < others_.size(); ++i) {
    add_steps(found,
              {.takes = false,
               .class_index = i,
               .names = others_[i].names,
               .set = others_[i].set,
               .next = after_one(at)},
              at.open, witnesses);
  }
  return found;
}

// Where the grammar counts: a step may only be taken if an end can still be reached.
Counting SchemaObjectEmitter::counting_of(size_t position, const Step& step) const {
  if (!counts_in_grammar_) return {};
  if (!step.takes && position < properties_.size()) {
    const auto num_left = static_cast<uint32_t>(properties_.size() - position - 1);
    const uint32_t min = others_.empty() && min_ > num_left ? min_ - num_left : 0;
    return {{min, kUnbounded}, 0};
  }
  const uint32_t required = position < properties_.size() ? num_required_from_[position + 1] : 0;
  return {{0, max_ == kUnbounded ? max_ : max_ - 1 - required}, 1};
}

// Behind the comma one more property must have room. There is room for the required ones.
Counting SchemaObjectEmitter::comma_counting(size_t position) const {
  if (!counts_in_grammar_ || max_ == kUnbounded || num_required_from_[position] > 0) return {};
  return {{0, max_ - 1}, 0};
}

void SchemaObjectEmitter::add_close(StateId from, RegexId bracket) {
  const CountRange count = counts_in_grammar_ ? CountRange{min_, max_} : CountRange{};
  emitter_.builder().add_terminal(from, bracket, to_, {.count = count});
}

// What may follow a property. The comma is a terminal of its own: the names of all properties that
// may follow begin behind it and its blanks.
void SchemaObjectEmitter::emit_behind(size_t position, Spot& spot) {
  if (!spot.behind) spot.behind = emitter_.add_state();
  if (spot.may_close) add_close(*spot.behind, emitter_.punctuation("}"));
  if (!spot.before) return;
  emitter_.builder().add_terminal(*spot.behind, emitter_.before_member(","), *spot.before,
                                  comma_counting(position));
}

// Behind the declared properties, steps lead from layer to the same layer. Finds the places from
// which an end can be reached, and gives them states.
void SchemaObjectEmitter::find_live_ends(Layer& layer) {
  std::vector<Progress> pending;
  for (const auto& entry : layer) pending.push_back(entry.first);
  std::map<Progress, std::vector<Progress>> from;
  while (!pending.empty()) {
    const Progress at = pending.back();
    pending.pop_back();
    for (const Step& step : other_steps(at)) {
      from[step.next].push_back(at);
      if (layer.try_emplace(step.next).second) pending.push_back(step.next);
    }
  }
  for (auto& [at, spot] : layer) {
    spot.may_close = may_end(at);
    if (!spot.may_close) continue;
    spot.behind = emitter_.add_state();
    pending.push_back(at);
  }
  while (!pending.empty()) {
    const Progress at = pending.back();
    pending.pop_back();
    for (const Progress& before : from[at]) {
      Spot& spot = layer[before];
      if (spot.before) continue;
      spot.before = emitter_.add_state();
      if (spot.behind) continue;
      spot.behind = emitter_.add_state();
      pending.push_back(before);
    }
  }
}

void SchemaObjectEmitter::emit_others(Layer& layer) {
  for (auto& [at, spot] : layer) {
    if (spot.behind) emit_behind(properties_.size(), spot);
    if (!spot.before) continue;
    for (const Step& step : other_steps(at)) {
      if (!layer[step.next].behind) continue;
      emitter_.set_open_names();
      const RegexId name = step.names == emitter_.normaliser().string_language({})
                               ? emitter_.scalars().string()
                               : json_quoted(regexes_, step.names);
      emitter_.add_value(*spot.before, key(name), step.set, *layer[step.next].behind,
                         counting_of(properties_.size(), step));
    }
  }
}

void SchemaObjectEmitter::emit_layer(size_t position, Layer& layer, const Layer& next,
                                     StateId from) {
  const RegexId name =
      json_quoted(regexes_, schema_any_of_texts(regexes_, {&properties_[position].name, 1}));
  for (auto& [at, spot] : layer) {
    for (const Step& step : steps(position, at)) {
      const Spot& then = next.at(step.next);
      if (!step.takes) spot.may_close |= then.may_close;
      const std::optional<StateId> target = step.takes ? then.behind : then.before;
      if (!target) continue;
      if (!spot.before) spot.before = position == 0 ? from : emitter_.add_state();
      const Counting counting = counting_of(position, step);
      if (step.takes) {
        emitter_.add_value(*spot.before, key(name), step.set, *target, counting);
      } else {
        emitter_.builder().add_empty(*spot.before, *target, counting);
      }
    }
    if (at.count > 0 && (spot.may_close || spot.before)) emit_behind(position, spot);
  }
}

void SchemaObjectEmitter::emit(StateId from) {
  find_properties();
  if (!rules_.names.empty()) {
    const RegexId names = emitter_.normaliser().string_language(rules_.names);
    for (Property& property : properties_) {
      if (regexes_.matches(names, schema_string_body(property.name))) continue;
      property.set = {emitter_.document().nothing()};
    }
  }
  find_name_classes();
  for (const Property& property : properties_) {
    if (property.is_required && !emitter_.has_values(property.set)) return;
  }
  std::erase_if(properties_,
                [&](const Property& property) { return !emitter_.has_values(property.set); });
  find_obligations();
  if (!find_counting()) return;
  const uint32_t open = (1U << obligations_.size()) - 1;
  std::vector<Layer> layers(properties_.size() + 1);
  layers[0].try_emplace(Progress{0, open});
  for (size_t i = 0; i < properties_.size(); ++i) {
    for (const auto& entry : layers[i]) {
      for (const Step& step : steps(i, entry.first)) layers[i + 1].try_emplace(step.next);
    }
  }
  find_live_ends(layers.back());
  emit_others(layers.back());
  for (size_t i = properties_.size(); i-- > 0;) emit_layer(i, layers[i], layers[i + 1], from);
  const Spot& first = layers[0][Progress{0, open}];
  if (properties_.empty() && first.before) emitter_.builder().add_empty(from, *first.before);
  if (first.may_close) add_close(from, regexes_.byte('}'));
}

}  // namespace

void emit_schema_object(SchemaEmitter& emitter, const SchemaObjectRules& rules, StateId from,
                        StateId to) {
  SchemaObjectEmitter(emitter, rules, to).emit(from);
}

}  // namespace paceline
