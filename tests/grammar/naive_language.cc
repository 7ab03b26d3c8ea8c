#include "tests/grammar/naive_language.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

namespace paceline {
namespace {

class NaiveReader {
 public:
  NaiveReader(Grammar& grammar, std::string_view text) : grammar_(grammar), text_(text) {}

  bool accepts() {
    const auto root = static_cast<uint32_t>(grammar_.root);
    ends_.try_emplace({root, 0});
    do {
      has_changed_ = false;
      // Reading a rule may add rules that it calls.
      std::vector<Call> calls;
      for (const auto& [call, ends] : ends_) calls.push_back(call);
      for (const Call& call : calls) read(call);
    } while (has_changed_);
    return ends_[{root, 0}].contains(text_.size());
  }

 private:
  using Call = std::pair<uint32_t, size_t>;              // rule, position
  using Place = std::tuple<uint32_t, uint32_t, size_t>;  // state, count, position

  void read(const Call& call) {
    const GrammarRule& rule = grammar_.rules[call.first];
    std::set<Place> seen;
    std::vector<Place> pending{{static_cast<uint32_t>(rule.start), 0, call.second}};
    while (!pending.empty()) {
      const Place place = pending.back();
      pending.pop_back();
      if (!seen.insert(place).second) continue;
      const auto [id, count, position] = place;
      const GrammarState& state = grammar_.states[id];
      if (state.ends && state.ends->contains(count)) add_end(call, position);
      for (const GrammarEdge& edge : state.edges) {
        if (!edge.count.contains(count)) continue;
        const uint32_t next_count = std::min(count + edge.adds, rule.highest_count);
        for (const size_t end : ends_of(edge, position)) {
          pending.emplace_back(static_cast<uint32_t>(edge.target), next_count, end);
        }
      }
    }
  }

  std::set<size_t> ends_of(const GrammarEdge& edge, size_t position) {
    if (edge.reads == GrammarEdge::Reads::nothing) return {position};
    if (edge.reads == GrammarEdge::Reads::rule) {
      const auto [entry, is_new] = ends_.try_emplace({edge.symbol, position});
      has_changed_ |= is_new;
      return entry->second;
    }
    std::set<size_t> ends;
    RegexId rest = grammar_.terminals[edge.symbol];
    for (size_t at = position; at < text_.size() && rest != RegexSet::kNothing; ++at) {
      rest = grammar_.regexes.derivative(rest, static_cast<uint8_t>(text_[at]));
      if (grammar_.regexes.is_nullable(rest)) ends.insert(at + 1);
    }
    return ends;
  }

  void add_end(const Call& call, size_t position) {
    if (ends_[call].insert(position).second) has_changed_ = true;
  }

  Grammar& grammar_;
  std::string_view text_;
  std::map<Call, std::set<size_t>> ends_;
  bool has_changed_ = false;
};

}  // namespace

bool naively_accepts(Grammar& grammar, std::string_view text) {
  return NaiveReader(grammar, text).accepts();
}

}  // namespace paceline
