#include "engine/stop_matcher.h"

#include <deque>

#include "base/error.h"

namespace paceline {

StopAutomaton::StopAutomaton(std::span<const std::string> strings) {
  states_.emplace_back();
  for (size_t i = 0; i < strings.size(); ++i) {
    PL_CHECK(!strings[i].empty(), "empty stop string");
    int32_t state = 0;
    for (const char c : strings[i]) {
      const auto byte = static_cast<uint8_t>(c);
      int32_t reached = child(state, byte);
      if (reached == kNone) {
        reached = static_cast<int32_t>(states_.size());
        State& parent = states_[static_cast<size_t>(state)];
        const State added{.sibling = parent.first_child, .depth = parent.depth + 1, .byte = byte};
        parent.first_child = reached;
        states_.push_back(added);
      }
      state = reached;
    }
    State& end = states_[static_cast<size_t>(state)];
    if (end.match == kNone) end.match = static_cast<int32_t>(i);
    lengths_.push_back(static_cast<int64_t>(strings[i].size()));
  }
  // Breadth first: the suffixes of a state are shorter than it.
  std::deque<int32_t> queue = {0};
  while (!queue.empty()) {
    const int32_t parent = queue.front();
    queue.pop_front();
    for (int32_t at = states_[static_cast<size_t>(parent)].first_child; at != kNone;) {
      State& state = states_[static_cast<size_t>(at)];
      if (parent != 0) state.suffix = next(states_[static_cast<size_t>(parent)].suffix, state.byte);
      if (state.match == kNone) state.match = states_[static_cast<size_t>(state.suffix)].match;
      queue.push_back(at);
      at = state.sibling;
    }
  }
}

int32_t StopAutomaton::child(int32_t state, uint8_t byte) const {
  int32_t at = states_[static_cast<size_t>(state)].first_child;
  while (at != kNone && states_[static_cast<size_t>(at)].byte != byte) {
    at = states_[static_cast<size_t>(at)].sibling;
  }
  return at;
}

int32_t StopAutomaton::next(int32_t state, uint8_t byte) const {
  for (;;) {
    const int32_t reached = child(state, byte);
    if (reached != kNone) return reached;
    if (state == 0) return 0;
    state = states_[static_cast<size_t>(state)].suffix;
  }
}

std::optional<StopMatch> StopMatcher::push(std::string_view bytes) {
  for (const char c : bytes) {
    const auto& states = automaton_->states_;
    state_ = automaton_->next(state_, static_cast<uint8_t>(c));
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
