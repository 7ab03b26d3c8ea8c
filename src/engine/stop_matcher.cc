#include "engine/stop_matcher.h"

#include <deque>

#include "base/error.h"

namespace paceline {
namespace {
constexpr int32_t kNone = -1;  // no edge, no match
}

StopAutomaton::StopAutomaton(std::span<const std::string> strings) {
  const auto new_state = [this](int32_t depth) {
    State& state = states_.emplace_back();
    state.next.fill(kNone);
    state.depth = depth;
    return static_cast<int32_t>(states_.size()) - 1;
  };
  new_state(0);
  for (size_t i = 0; i < strings.size(); ++i) {
    PL_CHECK(!strings[i].empty(), "empty stop string");
    int32_t state = 0;
    for (const char c : strings[i]) {
      const auto byte = static_cast<uint8_t>(c);
      int32_t next = states_[static_cast<size_t>(state)].next[byte];
      if (next == kNone) {
        next = new_state(states_[static_cast<size_t>(state)].depth + 1);
        states_[static_cast<size_t>(state)].next[byte] = next;
      }
      state = next;
    }
    if (states_[static_cast<size_t>(state)].match == kNone) {
      states_[static_cast<size_t>(state)].match = static_cast<int32_t>(i);
    }
    lengths_.push_back(static_cast<int64_t>(strings[i].size()));
  }
  // Breadth first: a missing edge goes where the longest proper suffix's edge goes.
  std::vector<int32_t> suffix(states_.size(), 0);
  std::deque<int32_t> queue;
  for (int32_t& next : states_[0].next) {
    if (next == kNone) {
      next = 0;
    } else {
      queue.push_back(next);
    }
  }
  while (!queue.empty()) {
    const auto current = static_cast<size_t>(queue.front());
    queue.pop_front();
    const State& fallback = states_[static_cast<size_t>(suffix[current])];
    if (states_[current].match == kNone) states_[current].match = fallback.match;
    for (size_t byte = 0; byte < 256; ++byte) {
      int32_t& next = states_[current].next[byte];
      if (next == kNone) {
        next = fallback.next[byte];
      } else {
        suffix[static_cast<size_t>(next)] = fallback.next[byte];
        queue.push_back(next);
      }
    }
  }
}

std::optional<StopMatch> StopMatcher::push(std::string_view bytes) {
  for (const char c : bytes) {
    const auto& states = automaton_->states_;
    state_ = states[static_cast<size_t>(state_)].next[static_cast<uint8_t>(c)];
    ++consumed_;
    const int32_t match = states[static_cast<size_t>(state_)].match;
    if (match >= 0) {
      return StopMatch{.string_index = match,
                       .begin = consumed_ - automaton_->lengths_[static_cast<size_t>(match)]};
    }
  }
  return std::nullopt;
}

int64_t StopMatcher::releasable_bytes() const {
  return consumed_ - automaton_->states_[static_cast<size_t>(state_)].depth;
}

}  // namespace paceline
