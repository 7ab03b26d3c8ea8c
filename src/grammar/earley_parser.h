// EarleyParser follows a grammar from terminal to terminal.
//
// Earley's algorithm ("An Efficient Context-Free Parsing Algorithm", CACM 1970) with item sets as
// values: an item's origin is the set in which its rule was predicted, not a position in the text.
// Equal sets are one, wherever in a text they arise, so moves from set to set are remembered, and a
// state of the parser is one number that is copied, kept and taken back freely. Rules that may read
// nothing are stepped over when they are predicted (Aycock and Horspool, "Practical Earley
// Parsing", 2002).
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "grammar/lexer.h"

namespace paceline {

enum class ItemSetId : uint32_t {};

class EarleyParser {
 public:
  // A set of more items throws Error exhausted.
  EarleyParser(const Grammar& grammar, const Lexer& lexer, size_t max_items);

  // Before the text. Always the first set.
  static constexpr ItemSetId kStart{0};

  // After a text that the terminals in `matched` match. `from` must expect one of them.
  ItemSetId advance(ItemSetId from, TerminalSetId matched);
  // The terminals that may follow, sorted.
  std::span<const TerminalId> expected(ItemSetId set) const {
    return sets_[static_cast<size_t>(set)].expected;
  }
  // Whether a JSON value may begin here.
  bool begins_json(ItemSetId set) const;
  // Whether the text may end here.
  bool is_accepting(ItemSetId set) const { return sets_[static_cast<size_t>(set)].is_accepting; }

  size_t num_sets() const { return sets_.size(); }
  size_t memory_bytes() const;

 private:
  // In the set that holds them, items whose rule was predicted there have this origin.
  static constexpr ItemSetId kSelf{0xFFFFFFFF};

  struct Item {
    StateId state{};
    uint32_t count = 0;
    ItemSetId origin = kSelf;
    auto operator<=>(const Item&) const = default;
  };
  // An edge that may be taken: over a terminal, or over a rule that has been predicted.
  struct Move {
    uint32_t symbol = 0;
    Item next;
    auto operator<=>(const Move&) const = default;
  };
  struct ItemSet {
    std::vector<Move> scans;  // sorted
    std::vector<Move> calls;  // sorted
    std::vector<TerminalId> expected;
    bool is_accepting = false;
  };
  struct Closure;

  ItemSetId intern(ItemSet set);
  ItemSet close(const std::vector<Item>& kernel);
  void expand(const Item& item, Closure& closure);
  void complete(const Item& item, Closure& closure);

  const Grammar& grammar_;
  const Lexer& lexer_;
  size_t max_items_;
  std::vector<ItemSet> sets_;
  std::unordered_multimap<size_t, ItemSetId> index_;
  std::unordered_map<uint64_t, ItemSetId> moves_;  // by set and terminal set
  size_t num_moves_ = 0;
};

}  // namespace paceline
