// StopMatcher finds the first of some stop strings in a growing byte stream (Aho & Corasick, 1975).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

// The automaton of a set of strings; immutable, shared by any number of matchers.
class StopAutomaton {
 public:
  // None of `strings` is empty (PL_CHECK; the request's validation refuses that).
  explicit StopAutomaton(std::span<const std::string> strings);

 private:
  friend class StopMatcher;
  static constexpr int32_t kNone = -1;
  struct State {
    int32_t first_child = kNone;
    int32_t sibling = kNone;  // another child of the same state
    int32_t suffix = 0;       // the state of the longest proper suffix
    int32_t depth = 0;        // bytes of some string that were matched to get here
    int32_t match = kNone;    // the string that ends here (the longest one)
    uint8_t byte = 0;         // that leads here
  };

  int32_t child(int32_t state, uint8_t byte) const;
  int32_t next(int32_t state, uint8_t byte) const;

  std::vector<State> states_;
  std::vector<int64_t> lengths_;
};

struct StopMatch {
  int32_t string_index = 0;
  int64_t begin = 0;  // byte offset in the stream at which the stop string begins
};

// Over one stream; the automaton must outlive it.
class StopMatcher {
 public:
  explicit StopMatcher(const StopAutomaton& automaton) : automaton_(&automaton) {}

  // Consumes bytes up to and including the first match. After a match nothing more is consumed.
  std::optional<StopMatch> push(std::string_view bytes);

  // The number of bytes from the start of the stream that no later match can include.
  int64_t releasable_bytes() const;

 private:
  const StopAutomaton* automaton_;
  int32_t state_ = 0;
  int64_t consumed_ = 0;
};

}  // namespace paceline
