// Lexer runs the terminals that the parser expects over bytes: a DFA, built state by state as texts
// need it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/grammar.h"

namespace paceline {

// A state: which terminals may have begun, and what may follow in each.
enum class LexerStateId : uint32_t {};
// A set of terminals that a text matches. 0: none.
enum class TerminalSetId : uint32_t {};

// The terminals have no end of their own: where one matches, the parser may go on, and the terminal
// may go on too. So the language is that of the grammar, whichever match is longest.
class Lexer {
 public:
  // More states throw Error exhausted.
  Lexer(Grammar& grammar, size_t max_states);
  Lexer(const Lexer&) = delete;
  Lexer& operator=(const Lexer&) = delete;

  static constexpr LexerStateId kDead{0};

  // Before the first byte of any of the terminals (sorted).
  LexerStateId start(std::span<const TerminalId> terminals);
  // After a byte; kDead when no terminal begins so.
  LexerStateId step(LexerStateId state, uint8_t byte) {
    const LexerStateId next = rows_[static_cast<size_t>(state)][class_of_[byte]];
    return next == kUnknown ? compute_step(state, byte) : next;
  }
  // The terminals that match what was read. Means nothing in a state before the first byte.
  TerminalSetId matched(LexerStateId state) const {
    return states_[static_cast<size_t>(state)].matched;
  }
  std::span<const TerminalId> terminals(TerminalSetId set) const {
    return terminal_sets_[static_cast<size_t>(set)];
  }
  // Whether a byte may follow.
  bool can_go_on(LexerStateId state) const { return states_[static_cast<size_t>(state)].can_go_on; }
  // No other byte may follow; some of these may lead to kDead.
  ByteSet next_bytes(LexerStateId state);
  // The only terminal that may have begun, and what may follow in it; nothing when there are more.
  std::optional<std::pair<TerminalId, RegexId>> only_terminal(LexerStateId state) const;
  TerminalSetId set_of(TerminalId terminal) { return intern_terminals({terminal}); }
  // The state whose counts are cut to what `horizon` bytes can reach (RegexSet::cut_counts).
  LexerStateId cut_counts(LexerStateId state, uint32_t horizon);

  size_t num_states() const { return states_.size(); }
  size_t memory_bytes() const;

 private:
  static constexpr LexerStateId kUnknown{0xFFFFFFFF};
  static constexpr size_t kRowsOfBlock = 64;
  using Threads = std::vector<std::pair<TerminalId, RegexId>>;  // sorted
  struct State {
    Threads threads;
    TerminalSetId matched{};
    bool can_go_on = false;
  };

  LexerStateId compute_step(LexerStateId state, uint8_t byte);
  LexerStateId intern(Threads threads);
  void add_row();
  TerminalSetId intern_terminals(std::vector<TerminalId> terminals);

  Grammar& grammar_;
  size_t max_states_;
  size_t num_classes_;
  std::array<uint8_t, 256> class_of_;
  std::vector<State> states_;
  std::vector<LexerStateId*> rows_;                      // by state, then by class of byte
  std::vector<std::vector<LexerStateId>> blocks_;        // of the rows, which stay where they are
  std::unordered_multimap<size_t, LexerStateId> index_;  // by hash
  std::vector<std::vector<TerminalId>> terminal_sets_;
  std::map<std::vector<TerminalId>, TerminalSetId> terminal_index_;
  std::unordered_map<uint64_t, LexerStateId> cut_;  // by state and horizon
  size_t num_threads_ = 0;
};

}  // namespace paceline
