#include "text/label_trie.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"

namespace paceline {
namespace {

// Neighbours in lexical order: a label comes right before one that begins with it.
void check_prefix_free(const std::vector<std::vector<TokenId>>& labels) {
  std::vector<size_t> order(labels.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return labels[a] < labels[b]; });
  for (size_t i = 0; i < order.size(); ++i) {
    const auto& label = labels[order[i]];
    if (label.empty()) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("the tokenizer has no token for label {}", order[i]));
    }
    if (i == 0) continue;
    const auto& before = labels[order[i - 1]];
    if (before.size() > label.size() || !std::equal(before.begin(), before.end(), label.begin())) {
      continue;
    }
    throw Error(ErrorCode::unsupported,
                fmt::format("the tokenizer can't tell labels {} and {} apart: the tokens of one "
                            "begin with those of the other",
                            order[i - 1], order[i]));
  }
}

}  // namespace

LabelTrie::LabelTrie(const std::vector<std::vector<TokenId>>& labels) : steps_(labels.size()) {
  check_prefix_free(labels);
  std::map<std::vector<TokenId>, size_t> known;  // nodes by their path
  size_t longest = 0;
  for (const auto& label : labels) longest = std::max(longest, label.size());
  for (size_t depth = 0; depth < longest; ++depth) {
    for (size_t i = 0; i < labels.size(); ++i) {
      if (labels[i].size() <= depth) continue;
      const auto at = labels[i].begin() + static_cast<std::ptrdiff_t>(depth);
      const auto [place, is_new] =
          known.emplace(std::vector<TokenId>(labels[i].begin(), at), nodes_.size());
      if (is_new) nodes_.push_back({.path = place->first, .next = {}});
      std::vector<TokenId>& next = nodes_[place->second].next;
      const auto child = std::find(next.begin(), next.end(), *at);
      steps_[i].push_back(
          {.node = place->second, .next = static_cast<size_t>(child - next.begin())});
      if (child == next.end()) next.push_back(*at);
    }
  }
}

std::vector<float> LabelTrie::logprobs(std::span<const LabelRow> rows) const {
  std::vector<float> sums;
  for (const std::vector<Step>& steps : steps_) {
    double sum = 0;
    for (const Step& step : steps) sum += double{rows[step.node].logprobs[step.next]};
    sums.push_back(static_cast<float>(sum));
  }
  return sums;
}

bool LabelTrie::likeliest_is_label(std::span<const LabelRow> rows) const {
  return std::any_of(steps_.begin(), steps_.end(), [&](const std::vector<Step>& steps) {
    return std::all_of(steps.begin(), steps.end(), [&](const Step& step) {
      return nodes_[step.node].next[step.next] == rows[step.node].likeliest;
    });
  });
}

}  // namespace paceline
