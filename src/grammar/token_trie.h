// TokenTrie holds the bytes of a vocabulary's tokens as a tree that is walked as one array.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/inside_cache.h"

namespace paceline {

// A byte of a token, in 8 bytes. Nodes stand depth first: the subtree of a node is the `num_nodes`
// nodes from it on.
struct TrieNode {
  uint64_t byte : 8;
  uint64_t depth : 10;      // the token's bytes up to this one, at least 1
  uint64_t token : 22;      // the one that ends here, or kNoToken
  uint64_t num_nodes : 24;  // of the subtree, itself included
};
static_assert(sizeof(TrieNode) == 8);

class TokenTrie {
 public:
  static constexpr uint32_t kNoToken = (1U << 22) - 1;
  static constexpr size_t kMaxTokenBytes = 1023;

  // Tokens of like length have a tree of their own: where the counts of a constraint are beyond the
  // reach of the longest, its state is like one without counts (RegexSet::cut_counts).
  struct Part {
    uint32_t max_bytes = 0;  // of its longest token
    std::vector<TrieNode> nodes;
  };

  // `tokens[id]` is what a token writes; empty: nothing, as end marks do. Such tokens, and those of
  // more than kMaxTokenBytes, are in no mask. At most kNoToken tokens.
  explicit TokenTrie(std::span<const std::string> tokens);

  const std::vector<Part>& parts() const { return parts_; }
  size_t num_tokens() const { return bytes_begin_.size() - 1; }
  std::string_view bytes(uint32_t token) const {
    return std::string_view(bytes_).substr(bytes_begin_[token],
                                           bytes_begin_[token + 1] - bytes_begin_[token]);
  }
  // Whether a token begins with `text` and goes on.
  bool has_longer(std::string_view text) const;
  // Those that write at least two double quotes; at least `count` of 2 to 4, and a comma or an
  // opening brace.
  std::span<const uint32_t> tokens_with_quotes() const { return quoted_; }
  std::span<const uint32_t> tokens_with_members(size_t count) const { return members_[count - 2]; }
  // Those that begin with `byte` and write a double quote.
  std::span<const uint32_t> tokens_with_quote(uint8_t byte) const { return quoted_from_[byte]; }
  // What walks over this trie found, for other constraints.
  InsideCache& inside_cache() const { return *inside_cache_; }
  // Tokens that write the same as another: (the one in the tree, its double).
  std::span<const std::pair<uint32_t, uint32_t>> doubles() const { return doubles_; }

 private:
  void add_part(std::vector<uint32_t> tokens);

  std::string bytes_;
  std::vector<uint32_t> bytes_begin_;
  std::vector<Part> parts_;
  std::vector<std::pair<uint32_t, uint32_t>> doubles_;
  std::vector<uint32_t> quoted_;
  std::array<std::vector<uint32_t>, 3> members_;
  std::array<std::vector<uint32_t>, 256> quoted_from_;
  std::unique_ptr<InsideCache> inside_cache_ = std::make_unique<InsideCache>();
};

}  // namespace paceline
