#include "tokenizer/string_matcher.h"

#include <algorithm>
#include <numeric>

namespace paceline {
namespace {

uint8_t byte_at(std::string_view text, size_t offset) { return static_cast<uint8_t>(text[offset]); }

}  // namespace

StringMatcher::StringMatcher(const std::vector<std::string_view>& strings) {
  build_trie(strings);
  link_failures();
}

// Breadth first over the sorted strings: a state is a range of strings with a common prefix.
void StringMatcher::build_trie(const std::vector<std::string_view>& strings) {
  std::vector<uint32_t> order(strings.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return strings[a] < strings[b]; });
  struct Range {
    size_t begin, end, depth;
  };
  std::vector<Range> ranges = {{0, order.size(), 0}};
  states_.emplace_back();
  for (size_t state = 0; state < ranges.size(); ++state) {
    size_t begin = ranges[state].begin;
    const size_t end = ranges[state].end;
    const size_t depth = ranges[state].depth;
    const auto ends_here = [&](size_t i) { return strings[order[i]].size() == depth; };
    if (begin < end && ends_here(begin)) {
      states_[state].string = order[begin];
      states_[state].string_size = static_cast<uint32_t>(depth);
    }
    while (begin < end && ends_here(begin)) ++begin;
    states_[state].first_edge = static_cast<uint32_t>(edges_.size());
    while (begin < end) {
      const uint8_t byte = byte_at(strings[order[begin]], depth);
      size_t last = begin;
      while (last < end && byte_at(strings[order[last]], depth) == byte) ++last;
      edges_.push_back({byte, static_cast<uint32_t>(states_.size())});
      states_.emplace_back();
      ranges.push_back({begin, last, depth + 1});
      begin = last;
    }
    states_[state].num_edges = static_cast<uint32_t>(edges_.size()) - states_[state].first_edge;
  }
  for (uint32_t i = 0; i < states_[kStart].num_edges; ++i) begins_[edges_[i].byte] = true;
}

// States are in order of depth, so a state's failure edge is known before its children need it.
void StringMatcher::link_failures() {
  for (size_t parent = 0; parent < states_.size(); ++parent) {
    const State from = states_[parent];
    for (uint32_t i = from.first_edge; i < from.first_edge + from.num_edges; ++i) {
      State& state = states_[edges_[i].target];
      if (parent == kStart) {
        state.failure = kStart;
      } else {
        state.failure = from.failure == kDead ? kDead : next(from.failure, edges_[i].byte);
      }
      if (state.string != kNoString) {
        state.failure = kDead;  // only a longer string with the same beginning can match now
      } else if (state.failure != kDead) {
        state.string = states_[state.failure].string;
        state.string_size = states_[state.failure].string_size;
      }
    }
  }
}

uint32_t StringMatcher::child(uint32_t state, uint8_t byte) const {
  const auto begin = edges_.begin() + states_[state].first_edge;
  const auto end = begin + states_[state].num_edges;
  const auto edge = std::lower_bound(
      begin, end, byte, [](const Edge& candidate, uint8_t b) { return candidate.byte < b; });
  return edge != end && edge->byte == byte ? edge->target : kDead;
}

uint32_t StringMatcher::next(uint32_t state, uint8_t byte) const {
  for (;;) {
    const uint32_t target = child(state, byte);
    if (target != kDead) return target;
    if (state == kStart) return kStart;
    state = states_[state].failure;
    if (state == kDead) return kDead;
  }
}

std::optional<StringMatcher::Match> StringMatcher::find(std::string_view text, size_t from) const {
  if (empty()) return std::nullopt;
  std::optional<Match> found;
  uint32_t state = kStart;
  for (size_t at = from; at < text.size(); ++at) {
    if (state == kStart) {
      while (at < text.size() && !begins_[byte_at(text, at)]) ++at;
      if (at == text.size()) break;
    }
    state = next(state, byte_at(text, at));
    if (state == kDead) break;
    const State& here = states_[state];
    if (here.string != kNoString) {
      found = Match{at + 1 - here.string_size, at + 1, here.string};
    }
  }
  return found;
}

}  // namespace paceline
