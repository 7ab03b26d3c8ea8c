#include "grammar/lexer.h"

#include <fmt/format.h>

#include <algorithm>

#include "paceline/error.h"

namespace paceline {

Lexer::Lexer(Grammar& grammar, size_t max_states)
    : grammar_(grammar),
      max_states_(max_states),
      num_classes_(grammar.regexes.num_byte_classes()),
      class_of_(grammar.regexes.byte_classes()) {
  intern_terminals({});
  intern({});  // kDead
  std::fill_n(rows_[0], num_classes_, kDead);
}

LexerStateId Lexer::start(std::span<const TerminalId> terminals) {
  Threads threads;
  for (const TerminalId terminal : terminals) {
    threads.emplace_back(terminal, grammar_.terminals[static_cast<size_t>(terminal)]);
  }
  return intern(std::move(threads));
}

LexerStateId Lexer::compute_step(LexerStateId state, uint8_t byte) {
  Threads next;
  RegexSet& regexes = grammar_.regexes;
  for (const auto& [terminal, regex] : states_[static_cast<size_t>(state)].threads) {
    if (!regexes.first_bytes(regex)[byte]) continue;
    const RegexId derivative = regexes.derivative(regex, byte);
    if (!regexes.is_nothing(derivative)) next.emplace_back(terminal, derivative);
  }
  const LexerStateId result = intern(std::move(next));
  rows_[static_cast<size_t>(state)][class_of_[byte]] = result;
  return result;
}

LexerStateId Lexer::intern(Threads threads) {
  size_t hash = threads.size();
  for (const auto& [terminal, regex] : threads) {
    hash ^= static_cast<uint64_t>(terminal) << 32 | static_cast<uint64_t>(regex);
    hash *= 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 32;
  }
  const auto [begin, end] = index_.equal_range(hash);
  for (auto entry = begin; entry != end; ++entry) {
    if (states_[static_cast<size_t>(entry->second)].threads == threads) return entry->second;
  }
  if (states_.size() >= max_states_) {
    throw Error(ErrorCode::exhausted,
                fmt::format("the constraint is too complex: more than {} states of its terminals",
                            max_states_));
  }
  std::vector<TerminalId> matched;
  bool can_go_on = false;
  for (const auto& [terminal, regex] : threads) {
    can_go_on |= regex != RegexSet::kEmpty;
    if (grammar_.regexes.is_nullable(regex)) matched.push_back(terminal);
  }
  num_threads_ += threads.size();
  const auto state = static_cast<LexerStateId>(states_.size());
  states_.push_back({std::move(threads), intern_terminals(std::move(matched)), can_go_on});
  add_row();
  index_.emplace(hash, state);
  return state;
}

void Lexer::add_row() {
  const size_t row = rows_.size() % kRowsOfBlock;
  if (row == 0) blocks_.emplace_back(kRowsOfBlock * num_classes_, kUnknown);
  rows_.push_back(blocks_.back().data() + row * num_classes_);
}

TerminalSetId Lexer::intern_terminals(std::vector<TerminalId> terminals) {
  const auto [entry, is_new] = terminal_index_.try_emplace(
      std::move(terminals), static_cast<TerminalSetId>(terminal_sets_.size()));
  if (is_new) terminal_sets_.push_back(entry->first);
  return entry->second;
}

ByteSet Lexer::next_bytes(LexerStateId state) {
  ByteSet found;
  for (const auto& [terminal, regex] : states_[static_cast<size_t>(state)].threads) {
    found |= grammar_.regexes.first_bytes(regex);
  }
  return found;
}

std::optional<std::pair<TerminalId, RegexId>> Lexer::only_terminal(LexerStateId state) const {
  const Threads& threads = states_[static_cast<size_t>(state)].threads;
  if (threads.size() != 1) return std::nullopt;
  return threads[0];
}

LexerStateId Lexer::cut_counts(LexerStateId state, uint32_t horizon) {
  const uint64_t key = static_cast<uint64_t>(state) << 32 | horizon;
  if (const auto found = cut_.find(key); found != cut_.end()) return found->second;
  Threads threads = states_[static_cast<size_t>(state)].threads;
  for (auto& [terminal, regex] : threads) regex = grammar_.regexes.cut_counts(regex, horizon);
  const LexerStateId result = intern(std::move(threads));
  cut_.emplace(key, result);
  return result;
}

size_t Lexer::memory_bytes() const {
  constexpr size_t kMapNode = 40;
  return states_.size() * (sizeof(State) + kMapNode) + num_threads_ * sizeof(Threads::value_type) +
         blocks_.size() * kRowsOfBlock * num_classes_ * sizeof(LexerStateId) +
         rows_.capacity() * sizeof(LexerStateId*) + cut_.size() * 40;
}

}  // namespace paceline
