// LabelTrie is the tree of the tokens of labels: one row of log-probabilities for each inner node
// gives those of all labels.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/sample.h"
#include "paceline/tokenizer.h"

namespace paceline {

// What the model says of the tokens after a node.
struct LabelRow {
  std::vector<float> logprobs;  // of the node's `next`
  TokenId likeliest = 0;        // of the whole vocabulary
};

class LabelTrie {
 public:
  struct Node {
    std::vector<TokenId> path;  // from the root
    std::vector<TokenId> next;  // different
  };

  // Throws Error unsupported, naming both, where a label begins with another or is empty: the
  // tokenizer can't tell them apart.
  explicit LabelTrie(const std::vector<std::vector<TokenId>>& labels);

  // Those that have children, the root first and each after its parent.
  std::span<const Node> nodes() const { return nodes_; }

  // Of the labels in their order, `rows` those of nodes(): sums over their tokens.
  std::vector<float> logprobs(std::span<const LabelRow> rows) const;
  // Whether the likeliest tokens, one after another, are a label's.
  bool likeliest_is_label(std::span<const LabelRow> rows) const;

 private:
  // A token of a label: which of its node's `next` it is.
  struct Step {
    size_t node = 0;
    size_t next = 0;
  };

  std::vector<Node> nodes_;
  std::vector<std::vector<Step>> steps_;  // of each label
};

}  // namespace paceline
