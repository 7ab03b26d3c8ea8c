// BpeMerger: merges the symbols of one piece, lowest rank first, leftmost first among equals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "tokenizer/merge_table.h"

namespace paceline {

// Positions in order of rank, and from left to right within a rank. Each rank has a queue. Merging
// uses few ranks, mostly from left to right, so most pops are O(1); a rank whose positions come out
// of order becomes a heap, with O(log n).
class RankQueue {
 public:
  struct Item {
    uint32_t rank = 0;
    uint32_t position = 0;
  };

  bool empty() const { return ranks_.empty(); }
  void push(uint32_t rank, uint32_t position);
  // The lowest rank's leftmost position; the queue must not be empty.
  Item pop();

 private:
  struct Positions {
    std::vector<uint32_t> items;
    size_t next = 0;       // of ascending items: the first that hasn't been popped
    bool is_heap = false;  // else ascending
  };

  std::map<uint32_t, Positions> ranks_;  // none is empty
};

// Sennrich et al., "Neural Machine Translation of Rare Words with Subword Units" (2016), with the
// ranks of a file; must agree with BPE of HF tokenizers. Keeps its buffers: use one object per call
// of encode.
class BpeMerger {
 public:
  explicit BpeMerger(const MergeTable& merges) : merges_(merges) {}

  // Appends the tokens that `symbols` merge into. O(n log n); short pieces use a faster quadratic
  // algorithm with equal results.
  void merge(std::span<const TokenId> symbols, std::vector<TokenId>& out);

  // The same; also appends the index of each token's first symbol to `starts`.
  void merge_with_starts(std::span<const TokenId> symbols, std::vector<TokenId>& out,
                         std::vector<uint32_t>& starts);

  // The two algorithms, for the test that compares them.
  void merge_short(std::span<const TokenId> symbols, std::vector<TokenId>& out);
  void merge_long(std::span<const TokenId> symbols, std::vector<TokenId>& out);

 private:
  // A symbol of a long piece in a doubly linked list, with its merge with the right neighbour.
  struct Node {
    TokenId token;
    uint32_t left;
    uint32_t right;  // kEnd: the last one
    uint32_t rank;   // Merge::kNone: no merge, or merged away
  };
  static constexpr uint32_t kEnd = UINT32_MAX;

  void merge_nodes(std::span<const TokenId> symbols);  // not empty; node 0 is then the first token
  void update(uint32_t at);
  void merge_with_right(uint32_t at);

  const MergeTable& merges_;
  std::vector<TokenId> tokens_;
  std::vector<uint32_t> ranks_;
  std::vector<Node> nodes_;
  RankQueue queue_;  // some items are out of date
};

}  // namespace paceline
