// StringMatcher finds a set of strings in a text: the leftmost match, the longest among those, in
// linear time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace paceline {

// The automaton of Aho and Corasick, "Efficient String Matching" (1975). A failure edge that would
// drop a found match ends the search, which makes the match leftmost-longest. Immutable.
class StringMatcher {
 public:
  struct Match {
    size_t begin = 0;
    size_t end = 0;
    size_t index = 0;  // of the string, in the order given; the first of equal ones
  };

  // No string may be empty.
  explicit StringMatcher(const std::vector<std::string_view>& strings);

  // The first match in `text` that begins at or after `from`.
  std::optional<Match> find(std::string_view text, size_t from) const;

  bool empty() const { return states_.size() == 1; }

 private:
  static constexpr uint32_t kStart = 0;
  static constexpr uint32_t kDead = UINT32_MAX;
  static constexpr uint32_t kNoString = UINT32_MAX;

  struct State {
    uint32_t first_edge = 0;  // into edges_, sorted by byte
    uint32_t num_edges = 0;
    uint32_t failure = kStart;
    uint32_t string = kNoString;  // the string that ends here; it may have begun later
    uint32_t string_size = 0;
  };
  struct Edge {
    uint8_t byte;
    uint32_t target;
  };

  void build_trie(const std::vector<std::string_view>& strings);
  void link_failures();
  uint32_t child(uint32_t state, uint8_t byte) const;  // kDead: none
  uint32_t next(uint32_t state, uint8_t byte) const;

  std::vector<State> states_;
  std::vector<Edge> edges_;
  std::array<bool, 256> begins_{};  // whether a string begins with this byte
};

}  // namespace paceline
