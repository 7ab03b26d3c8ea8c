#include "grammar/earley_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "base/error.h"
#include "paceline/error.h"

namespace paceline {

namespace {

struct ItemHash {
  template <class Item>
  size_t operator()(const Item& item) const {
    const uint64_t value = static_cast<uint64_t>(item.state) << 32 ^
                           static_cast<uint64_t>(item.origin) * 0x9E3779B97F4A7C15ULL ^
                           uint64_t { item.count } * 0xBF58476D1CE4E5B9ULL;
    return static_cast<size_t>(value ^ value >> 29);
  }
};

}  // namespace

// The items of a set while it is made.
struct EarleyParser::Closure {
  ItemSet set;
  std::vector<Item> pending;
  std::unordered_set<Item, ItemHash> seen;
  size_t max_items = 0;

  void add(const Item& item) {
    if (!seen.insert(item).second) return;
    if (seen.size() > max_items) {
      throw Error(
          ErrorCode::exhausted,
          fmt::format("the constraint is too complex: more than {} ways to read the text at "
                      "one place",
                      max_items));
    }
    pending.push_back(item);
  }
};

EarleyParser::EarleyParser(const Grammar& grammar, const Lexer& lexer, size_t max_items)
    : grammar_(grammar), lexer_(lexer), max_items_(max_items) {
  const GrammarRule& root = grammar.rules[static_cast<size_t>(grammar.root)];
  ItemSet first = close({{.state = root.start}});
  first.is_accepting |= root.is_nullable;
  intern(std::move(first));
}

void EarleyParser::expand(const Item& item, Closure& closure) {
  const GrammarState& state = grammar_.states[static_cast<size_t>(item.state)];
  const GrammarRule& rule = grammar_.rules[static_cast<size_t>(state.rule)];
  for (const GrammarEdge& edge : state.edges) {
    if (!edge.count.contains(item.count)) continue;
    const Item next{edge.target, std::min(item.count + edge.adds, rule.highest_count), item.origin};
    switch (edge.reads) {
      case GrammarEdge::Reads::nothing:
        closure.add(next);
        break;
      case GrammarEdge::Reads::terminal:
        closure.set.scans.push_back({edge.symbol, next});
        break;
      case GrammarEdge::Reads::rule: {
        const GrammarRule& called = grammar_.rules[edge.symbol];
        closure.set.calls.push_back({edge.symbol, next});
        closure.add({.state = called.start});
        if (called.is_nullable) closure.add(next);
      }
    }
  }
  if (state.ends && state.ends->contains(item.count)) complete(item, closure);
}

// The rule of the item has been read: what called it goes on. A rule that began here has read
// nothing, and was stepped over already.
void EarleyParser::complete(const Item& item, Closure& closure) {
  if (item.origin == kSelf) return;
  const RuleId rule = grammar_.states[static_cast<size_t>(item.state)].rule;
  if (rule == grammar_.root) {
    closure.set.is_accepting = true;
    return;
  }
  const auto symbol = static_cast<uint32_t>(rule);
  const std::vector<Move>& calls = sets_[static_cast<size_t>(item.origin)].calls;
  for (auto call =
           std::lower_bound(calls.begin(), calls.end(), symbol,
                            [](const Move&move, uint32_t value) { return move.symbol < value; });
       call != calls.end() && call->symbol == symbol; ++call) {
    Item next = call->next;
    if (next.origin == kSelf) next.origin = item.origin;
    closure.add(next);
  }
}

EarleyParser::ItemSet EarleyParser::close(const std::vector<Item>& kernel) {
  Closure closure;
  closure.max_items = max_items_;
  for (const Item& item : kernel) closure.add(item);
  while (!closure.pending.empty()) {
    const Item item = closure.pending.back();
    closure.pending.pop_back();
    expand(item, closure);
  }
  for (std::vector<Move>* moves : {&closure.set.scans, &closure.set.calls}) {
    std::sort(moves->begin(), moves->end());
    moves->erase(std::unique(moves->begin(), moves->end()), moves->end());
    moves->shrink_to_fit();
  }
  for (const Move& scan : closure.set.scans) {
    const auto terminal = static_cast<TerminalId>(scan.symbol);
    std::vector<TerminalId>& expected = closure.set.expected;
    if (expected.empty() || expected.back() != terminal) expected.push_back(terminal);
  }
  return std::move(closure.set);
}

bool EarleyParser::begins_json(ItemSetId set) const {
  const std::vector<Move>& calls = sets_[static_cast<size_t>(set)].calls;
  return std::any_of(calls.begin(), calls.end(),
                     [this](const Move& call) { return grammar_.rules[call.symbol].is_json; });
}

ItemSetId EarleyParser::intern(ItemSet set) {
  size_t hash = set.is_accepting ? 1 : 0;
  for (const std::vector<Move>* moves : {&set.scans, &set.calls}) {
    for (const Move& move : *moves) {
      hash = (hash ^ move.symbol ^ ItemHash{}(move.next)) * 0x9E3779B97F4A7C15ULL;
      hash ^= hash >> 31;
    }
  }
  const auto [begin, end] = index_.equal_range(hash);
  for (auto entry = begin; entry != end; ++entry) {
    const ItemSet& known = sets_[static_cast<size_t>(entry->second)];
    if (known.is_accepting == set.is_accepting && known.scans == set.scans &&
        known.calls == set.calls) {
      return entry->second;
    }
  }
  const auto id = static_cast<ItemSetId>(sets_.size());
  num_moves_ += set.scans.size() + set.calls.size();
  sets_.push_back(std::move(set));
  index_.emplace(hash, id);
  return id;
}

ItemSetId EarleyParser::advance(ItemSetId from, TerminalSetId matched) {
  const uint64_t key = static_cast<uint64_t>(from) << 32 | static_cast<uint64_t>(matched);
  if (const auto found = moves_.find(key); found != moves_.end()) return found->second;
  std::vector<Item> kernel;
  const std::span<const TerminalId> terminals = lexer_.terminals(matched);
  for (const Move& scan : sets_[static_cast<size_t>(from)].scans) {
    if (!std::binary_search(terminals.begin(), terminals.end(),
                            static_cast<TerminalId>(scan.symbol))) {
      continue;
    }
    Item next = scan.next;
    if (next.origin == kSelf) next.origin = from;
    kernel.push_back(next);
  }
  PL_CHECK(!kernel.empty(), "the parser was given terminals that it doesn't expect");
  const ItemSetId result = intern(close(kernel));
  moves_.emplace(key, result);
  return result;
}

size_t EarleyParser::memory_bytes() const {
  return sets_.size() * (sizeof(ItemSet) + 64) + num_moves_ * sizeof(Move) + moves_.size() * 40;
}

}  // namespace paceline
