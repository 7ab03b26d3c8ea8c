#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <optional>

#include "grammar/schema_emitter.h"

namespace paceline {
namespace {

using Counting = GrammarBuilder::Counting;

class SchemaArrayEmitter {
 public:
  SchemaArrayEmitter(SchemaEmitter& emitter, const SchemaArrayRules& rules, StateId to)
      : emitter_(emitter), rules_(rules), to_(to) {}

  void emit(StateId from);
  void emit_containing(StateId from);
  void emit_unique(StateId from);

 private:
  // What `contains` still asks for, one number for each.
  using Missing = std::vector<uint32_t>;

  void add_item(StateId from, bool is_first, const SchemaSet& set, StateId to,
                Counting counting = {}) {
    const RegexId lead = is_first ? RegexSet::kEmpty : emitter_.punctuation(",");
    emitter_.add_value(from, lead, set, to, counting);
  }
  void add_close(StateId from, CountRange count = {}) {
    emitter_.builder().add_terminal(from, emitter_.punctuation("]"), to_, {.count = count});
  }
  void emit_rest(StateId from, uint32_t num_before);
  StateId state_of(uint32_t position, const Missing& missing);
  void add_items_containing(StateId from, uint32_t position, const Missing& missing);

  SchemaEmitter& emitter_;
  const SchemaArrayRules& rules_;
  StateId to_;

  uint32_t num_positions_ = 0;  // beyond them all positions are alike
  std::map<std::pair<uint32_t, Missing>, StateId> states_;
  std::vector<std::pair<uint32_t, Missing>> pending_;
};

// Items behind `num_before` others, without end.
void SchemaArrayEmitter::emit_rest(StateId from, uint32_t num_before) {
  const uint32_t min = rules_.min > num_before ? rules_.min - num_before : 0;
  const uint32_t max = rules_.max == kUnbounded ? kUnbounded : rules_.max - num_before;
  const bool is_first = num_before == 0;
  const bool is_counted = max != kUnbounded || min > (is_first ? 1 : 0);
  const Counting one_more =
      is_counted ? Counting{{0, max == kUnbounded ? max : max - 1}, 1} : Counting{};
  if (!is_first) {
    add_close(from, is_counted ? CountRange{min, max} : CountRange{});
    return add_item(from, false, rules_.rest, from, one_more);
  }
  if (rules_.min == 0) add_close(from);
  const StateId next = emitter_.add_state();
  add_item(from, true, rules_.rest, next, one_more);
  add_close(next, is_counted ? CountRange{min, max} : CountRange{});
  add_item(next, false, rules_.rest, next, one_more);
}

void SchemaArrayEmitter::emit(StateId from) {
  const auto num_prefix = static_cast<uint32_t>(rules_.prefix.size());
  uint32_t longest = rules_.max;
  for (uint32_t i = 0; i <= num_prefix && i < longest; ++i) {
    if (!emitter_.has_values(rules_.item(i))) longest = i;
  }
  if (rules_.min > longest) return;
  StateId at = from;
  for (uint32_t i = 0;; ++i) {
    if (i == num_prefix && longest > i) return emit_rest(at, i);
    if (i >= rules_.min) add_close(at);
    if (i == longest) return;
    const StateId next = emitter_.add_state();
    add_item(at, i == 0, rules_.item(i), next);
    at = next;
  }
}

StateId SchemaArrayEmitter::state_of(uint32_t position, const Missing& missing) {
  position = std::min(position, num_positions_);
  const auto [entry, is_new] = states_.try_emplace(std::pair(position, missing));
  if (is_new) {
    entry->second = emitter_.add_state();
    pending_.emplace_back(position, missing);
  }
  return entry->second;
}

// `contains` asks for items of several schemas. An item may satisfy any subset of those still
// missing.
void SchemaArrayEmitter::add_items_containing(StateId from, uint32_t position,
                                              const Missing& missing) {
  std::vector<size_t> open;
  for (size_t i = 0; i < missing.size(); ++i) {
    if (missing[i] > 0 && position >= rules_.contains[i].from) open.push_back(i);
  }
  for (uint32_t choice = 0; choice < 1U << open.size(); ++choice) {
    SchemaSet set = rules_.item(position);
    Missing left = missing;
    for (size_t i = 0; i < open.size(); ++i) {
      if ((choice >> i & 1) == 0) continue;
      const SchemaSet& items = rules_.contains[open[i]].items;
      set.insert(set.end(), items.begin(), items.end());
      --left[open[i]];
    }
    if (emitter_.normaliser().is_impossible(set)) continue;
    add_item(from, position == 0, set, state_of(position + 1, left));
  }
}

void SchemaArrayEmitter::emit_containing(StateId from) {
  constexpr uint32_t kMostPositions = 500;
  constexpr size_t kMostContains = 6;
  Missing missing;
  num_positions_ = std::max(static_cast<uint32_t>(rules_.prefix.size()), rules_.min);
  if (rules_.max != kUnbounded) num_positions_ = std::max(num_positions_, rules_.max);
  for (const SchemaContains& contains : rules_.contains) {
    missing.push_back(contains.min);
    num_positions_ = std::max(num_positions_, contains.from);
    if (contains.min > kMostPositions) num_positions_ = kUnbounded;
  }
  num_positions_ = std::max(num_positions_, 1U);
  if (num_positions_ > kMostPositions || missing.size() > kMostContains) {
    throw Error(ErrorCode::exhausted,
                fmt::format("schema: too complex: \"contains\" beside more than {} items, or {} "
                            "others",
                            kMostPositions, kMostContains));
  }
  states_.emplace(std::pair(0U, missing), from);
  pending_.emplace_back(0, missing);
  while (!pending_.empty()) {
    const auto [position, left] = pending_.back();
    pending_.pop_back();
    const StateId at = states_.at({position, left});
    const bool is_satisfied =
        std::all_of(left.begin(), left.end(), [](uint32_t count) { return count == 0; });
    if (is_satisfied && position >= rules_.min) add_close(at);
    if (position < rules_.max) add_items_containing(at, position, left);
  }
}

// Items that are few values, none of them twice. A state for each set of values that have stood.
void SchemaArrayEmitter::emit_unique(StateId from) {
  const std::vector<RegexId> values = *emitter_.few_values(rules_.rest);
  const auto num_values = static_cast<uint32_t>(values.size());
  if (rules_.min > num_values) return;
  std::vector<std::optional<StateId>> states(size_t{1} << num_values);
  states[0] = from;
  for (uint32_t used = 0; used < states.size(); ++used) {  // subsets come first
    if (!states[used]) continue;
    const auto count = static_cast<uint32_t>(std::popcount(used));
    if (count >= rules_.min) add_close(*states[used]);
    if (count == rules_.max) continue;
    const RegexId comma = count == 0 ? RegexSet::kEmpty : emitter_.punctuation(",");
    for (uint32_t i = 0; i < num_values; ++i) {
      if ((used >> i & 1) != 0) continue;
      std::optional<StateId>& next = states[used | 1U << i];
      if (!next) next = emitter_.add_state();
      emitter_.builder().add_terminal(
          *states[used], emitter_.regexes().concat(std::array{comma, emitter_.blanks(), values[i]}),
          *next);
    }
  }
}

}  // namespace

void emit_schema_array(SchemaEmitter& emitter, const SchemaArrayRules& rules, StateId from,
                       StateId to) {
  SchemaArrayEmitter array(emitter, rules, to);
  if (rules.unique != nullptr && rules.max > 1) return array.emit_unique(from);
  rules.contains.empty() ? array.emit(from) : array.emit_containing(from);
}

}  // namespace paceline
