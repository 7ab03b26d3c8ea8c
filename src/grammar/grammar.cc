#include "grammar/grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "base/error.h"
#include "paceline/error.h"

namespace paceline {

GrammarBuilder::GrammarBuilder(const GrammarLimits& limits, JsonTexts json_texts)
    : limits_(limits), json_texts_(json_texts), regexes_(limits.regexes) {}

void GrammarBuilder::warn(const std::string& warning) {
  std::string placed = warning_place_ + warning;
  if (std::find(warnings_.begin(), warnings_.end(), placed) == warnings_.end()) {
    warnings_.push_back(std::move(placed));
  }
}

RuleId GrammarBuilder::add_rule(std::string name) {
  const auto rule = static_cast<RuleId>(rules_.size());
  rules_.push_back({.name = std::move(name)});
  rules_.back().start = add_state(rule);
  return rule;
}

StateId GrammarBuilder::start(RuleId rule) const { return rules_[static_cast<size_t>(rule)].start; }

StateId GrammarBuilder::add_state(RuleId rule) {
  if (states_.size() >= limits_.max_states) {
    throw Error(ErrorCode::exhausted,
                fmt::format("the constraint is too complex: more than {} grammar states",
                            limits_.max_states));
  }
  states_.push_back({.rule = rule, .edges = {}, .ends = {}});
  return static_cast<StateId>(states_.size() - 1);
}

void GrammarBuilder::add_edge(StateId from, GrammarEdge edge) {
  PL_CHECK(
      states_[static_cast<size_t>(from)].rule == states_[static_cast<size_t>(edge.target)].rule,
      "an edge between two rules");
  states_[static_cast<size_t>(from)].edges.push_back(edge);
}

TerminalId GrammarBuilder::terminal(RegexId regex) {
  const auto [entry, is_new] =
      terminal_of_regex_.try_emplace(regex, static_cast<TerminalId>(terminals_.size()));
  if (is_new) {
    if (terminals_.size() >= limits_.max_terminals) {
      throw Error(ErrorCode::exhausted,
                  fmt::format("the constraint is too complex: more than {} terminals",
                              limits_.max_terminals));
    }
    terminals_.push_back(regex);
  }
  return entry->second;
}

void GrammarBuilder::add_terminal(StateId from, RegexId regex, StateId to, Counting counting) {
  if (spelling_ != nullptr) regex = regexes_.spelt(regex, *spelling_);
  if (regexes_.is_nullable(regex)) add_empty(from, to, counting);
  if (regex == RegexSet::kEmpty) return;
  add_edge(from, {.reads = GrammarEdge::Reads::terminal,
                  .symbol = static_cast<uint32_t>(terminal(regex)),
                  .target = to,
                  .count = counting.count,
                  .adds = counting.adds});
}

void GrammarBuilder::add_call(StateId from, RuleId rule, StateId to, Counting counting) {
  add_edge(from, {.reads = GrammarEdge::Reads::rule,
                  .symbol = static_cast<uint32_t>(rule),
                  .target = to,
                  .count = counting.count,
                  .adds = counting.adds});
}

void GrammarBuilder::add_empty(StateId from, StateId to, Counting counting) {
  add_edge(from, {.target = to, .count = counting.count, .adds = counting.adds});
}

void GrammarBuilder::set_end(StateId state, CountRange count) {
  states_[static_cast<size_t>(state)].ends = count;
}

// A state is productive when some text leads from it to an end of its rule, counts aside. Found
// backwards: each state is settled once, and each rule once.
std::vector<bool> GrammarBuilder::find_productive_states() {
  std::vector<bool> terminal_is_possible(terminals_.size());
  for (size_t i = 0; i < terminals_.size(); ++i) {
    terminal_is_possible[i] = !regexes_.is_nothing(terminals_[i]);
  }
  struct Use {
    size_t from;
    uint32_t rule;  // that the edge calls, or kUnbounded
  };
  std::vector<std::vector<Use>> uses(states_.size());     // edges by target
  std::vector<std::vector<size_t>> calls(rules_.size());  // by rule: targets of edges that call it
  std::vector<size_t> pending;
  for (size_t from = 0; from < states_.size(); ++from) {
    for (const GrammarEdge& edge : states_[from].edges) {
      const auto target = static_cast<size_t>(edge.target);
      if (edge.reads == GrammarEdge::Reads::terminal && !terminal_is_possible[edge.symbol])
        continue;
      const bool is_call = edge.reads == GrammarEdge::Reads::rule;
      uses[target].push_back({from, is_call ? edge.symbol : kUnbounded});
      if (is_call) calls[edge.symbol].push_back(target);
    }
    if (states_[from].ends) pending.push_back(from);
  }
  std::vector<bool> is_productive(states_.size(), false);
  const auto settle = [&](size_t state) {
    if (is_productive[state]) return false;
    is_productive[state] = true;
    return true;
  };
  for (const size_t state : pending) is_productive[state] = true;
  const auto rule_is_productive = [&](uint32_t rule) {
    return is_productive[static_cast<size_t>(rules_[rule].start)];
  };
  while (!pending.empty()) {
    const size_t state = pending.back();
    pending.pop_back();
    for (const Use& use : uses[state]) {
      if (use.rule != kUnbounded && !rule_is_productive(use.rule)) continue;
      if (settle(use.from)) pending.push_back(use.from);
    }
    const auto rule = static_cast<uint32_t>(states_[state].rule);
    if (static_cast<size_t>(rules_[rule].start) != state) continue;
    for (const size_t target : calls[rule]) {  // edges that waited for the rule
      if (is_productive[target]) pending.push_back(target);
    }
  }
  return is_productive;
}

void GrammarBuilder::drop_unproductive(const std::vector<bool>& is_productive) {
  for (GrammarState& state : states_) {
    std::erase_if(state.edges, [&](const GrammarEdge& edge) {
      if (!is_productive[static_cast<size_t>(edge.target)]) return true;
      if (edge.reads == GrammarEdge::Reads::rule) {
        return !is_productive[static_cast<size_t>(rules_[edge.symbol].start)];
      }
      return edge.reads == GrammarEdge::Reads::terminal &&
             regexes_.is_nothing(terminals_[edge.symbol]);
    });
  }
}

void GrammarBuilder::find_highest_counts() {
  for (const GrammarState& state : states_) {
    uint32_t& highest = rules_[static_cast<size_t>(state.rule)].highest_count;
    const auto include = [&](const CountRange& range) {
      highest = std::max(highest, range.max == kUnbounded ? range.min : range.max + 1);
    };
    for (const GrammarEdge& edge : state.edges) include(edge.count);
    if (state.ends) include(*state.ends);
  }
}

// Whether the rule ends without reading anything, as far as nullable rules are known.
bool GrammarBuilder::reads_nothing(const GrammarRule& rule) const {
  constexpr size_t kMaxVisits = 10'000;
  std::vector<std::pair<StateId, uint32_t>> pending{{rule.start, 0}};
  std::unordered_set<uint64_t> seen;
  while (!pending.empty()) {
    const auto [id, count] = pending.back();
    pending.pop_back();
    if (!seen.insert(static_cast<uint64_t>(id) << 32 | count).second) continue;
    if (seen.size() > kMaxVisits) {
      throw Error(
          ErrorCode::exhausted,
          fmt::format("the constraint is too complex: {} repeats what may be empty more than "
                      "{} times",
                      rule.name, kMaxVisits));
    }
    const GrammarState& state = states_[static_cast<size_t>(id)];
    if (state.ends && state.ends->contains(count)) return true;
    for (const GrammarEdge& edge : state.edges) {
      if (edge.reads == GrammarEdge::Reads::terminal || !edge.count.contains(count)) continue;
      if (edge.reads == GrammarEdge::Reads::rule && !rules_[edge.symbol].is_nullable) continue;
      pending.emplace_back(edge.target, std::min(count + edge.adds, rule.highest_count));
    }
  }
  return false;
}

void GrammarBuilder::find_nullable_rules() {
  std::vector<std::vector<uint32_t>> callers(rules_.size());
  for (const GrammarState& state : states_) {
    for (const GrammarEdge& edge : state.edges) {
      if (edge.reads != GrammarEdge::Reads::rule) continue;
      callers[edge.symbol].push_back(static_cast<uint32_t>(state.rule));
    }
  }
  std::vector<uint32_t> pending;
  for (uint32_t rule = 0; rule < rules_.size(); ++rule) pending.push_back(rule);
  while (!pending.empty()) {
    const uint32_t rule = pending.back();
    pending.pop_back();
    if (rules_[rule].is_nullable || !reads_nothing(rules_[rule])) continue;
    rules_[rule].is_nullable = true;
    pending.insert(pending.end(), callers[rule].begin(), callers[rule].end());
  }
}

Grammar GrammarBuilder::finish(RuleId root) && {
  const RuleId goal = add_rule("goal");
  const StateId end = add_state(goal);
  add_call(start(goal), root, end);
  set_end(end);
  const std::vector<bool> is_productive = find_productive_states();
  if (!is_productive[static_cast<size_t>(start(root))]) {
    throw Error(ErrorCode::invalid, "the constraint allows no text at all");
  }
  drop_unproductive(is_productive);
  find_highest_counts();
  find_nullable_rules();
  return {.regexes = std::move(regexes_),
          .terminals = std::move(terminals_),
          .rules = std::move(rules_),
          .states = std::move(states_),
          .root = goal,
          .warnings = std::move(warnings_)};
}

}  // namespace paceline
