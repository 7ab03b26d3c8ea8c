// Grammar is a context-free grammar whose terminals are regular languages: what every constraint is
// compiled to.
//
// A rule is an automaton (a recursive transition network: Woods, "Transition Network Grammars for
// Natural Language Analysis", 1970) whose edges read a terminal, another rule or nothing. So
// options and loops need no rules of their own, and a loop leads back to the same parser state. A
// rule may count: edges add one, and edges and ends have a range in which the count must lie.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/regex_set.h"

namespace paceline {

enum class TerminalId : uint32_t {};
enum class RuleId : uint32_t {};
enum class StateId : uint32_t {};  // of all rules together

// The counts with which an edge may be taken or a rule may end.
struct CountRange {
  uint32_t min = 0;
  uint32_t max = kUnbounded;
  bool contains(uint32_t count) const { return min <= count && count <= max; }
};

struct GrammarEdge {
  enum class Reads : uint8_t { nothing, terminal, rule };
  Reads reads = Reads::nothing;
  uint32_t symbol = 0;  // TerminalId or RuleId
  StateId target{};
  CountRange count;   // before `adds`
  uint32_t adds = 0;  // 0 or 1
};

// When an edge may be taken, and what it adds then.
struct EdgeCounting {
  CountRange count;
  uint32_t adds = 0;
};

struct GrammarState {
  RuleId rule{};
  std::vector<GrammarEdge> edges;
  std::optional<CountRange> ends;  // the counts with which the rule may end here
};

struct GrammarRule {
  std::string name;  // in messages
  StateId start{};
  uint32_t highest_count = 0;  // greater counts are equal to it
  bool is_nullable = false;    // may read nothing
  bool is_json = false;        // a JSON value, whose objects may not have a name twice
};

// Which texts of a value a grammar of JSON has.
enum class JsonTexts : uint8_t {
  written,   // the texts that a model may write: integers are digits, and blanks are few
  accepted,  // all that files have: an integer may be 18.0, a listed number 1.50
};

struct Grammar {
  RegexSet regexes;
  std::vector<RegexId> terminals;
  std::vector<GrammarRule> rules;
  std::vector<GrammarState> states;
  RuleId root{};  // calls what was asked for and nothing else; no rule calls it
  // What was asked for and isn't enforced, in sentences.
  std::vector<std::string> warnings;
};

// Beyond them Error exhausted, which names the limit.
struct GrammarLimits {
  RegexLimits regexes;
  size_t max_states = 200'000;
  size_t max_terminals = 100'000;
};

// Builds a Grammar rule by rule; rules may refer to each other in any order.
class GrammarBuilder {
 public:
  explicit GrammarBuilder(const GrammarLimits& limits = {},
                          JsonTexts json_texts = JsonTexts::written);

  RegexSet& regexes() { return regexes_; }
  JsonTexts json_texts() const { return json_texts_; }

  // Something isn't enforced; the same warning is kept once.
  void warn(const std::string& warning);
  // From now on warnings begin with `place`: "tool search: ".
  void set_warning_place(std::string place) { warning_place_ = std::move(place); }

  // The start state is made with the rule.
  RuleId add_rule(std::string name);
  StateId start(RuleId rule) const;
  void set_json(RuleId rule) { rules_[static_cast<size_t>(rule)].is_json = true; }
  StateId add_state(RuleId rule);

  using Counting = EdgeCounting;
  // The terminal is whatever `regex` matches but the empty text; where it matches that too, the
  // edge may also read nothing.
  void add_terminal(StateId from, RegexId regex, StateId to, Counting counting = {});
  void add_call(StateId from, RuleId rule, StateId to, Counting counting = {});
  void add_empty(StateId from, StateId to, Counting counting = {});
  void set_end(StateId state, CountRange count = {});

  // From now on terminals are added as this spells them; null: as they are. It must live as long.
  void spell_terminals(ByteSpelling* spelling) { spelling_ = spelling; }

  bool spells_terminals() const { return spelling_ != nullptr; }

  size_t num_states() const { return states_.size(); }

  // Drops what can't be part of any text. Error invalid when nothing matches `root`.
  Grammar finish(RuleId root) &&;

 private:
  void add_edge(StateId from, GrammarEdge edge);
  TerminalId terminal(RegexId regex);
  std::vector<bool> find_productive_states();
  void drop_unproductive(const std::vector<bool>& is_productive);
  bool reads_nothing(const GrammarRule& rule) const;
  void find_nullable_rules();
  void find_highest_counts();

  GrammarLimits limits_;
  JsonTexts json_texts_;
  std::string warning_place_;
  std::vector<std::string> warnings_;
  RegexSet regexes_;
  std::vector<RegexId> terminals_;
  std::unordered_map<RegexId, TerminalId> terminal_of_regex_;
  std::vector<GrammarRule> rules_;
  std::vector<GrammarState> states_;
  ByteSpelling* spelling_ = nullptr;
};

}  // namespace paceline
