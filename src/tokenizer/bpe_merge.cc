#include "tokenizer/bpe_merge.h"

#include <algorithm>
#include <functional>

namespace paceline {
namespace {

constexpr size_t kLongPiece = 64;  // symbols; about where the two ways cost the same

}  // namespace

void RankQueue::push(uint32_t rank, uint32_t position) {
  Positions& positions = ranks_[rank];
  auto& items = positions.items;
  if (!positions.is_heap && !items.empty() && items.back() > position) {
    items.erase(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(positions.next));
    positions.is_heap = true;  // ascending items are one
  }
  items.push_back(position);
  if (positions.is_heap) std::push_heap(items.begin(), items.end(), std::greater<>());
}

RankQueue::Item RankQueue::pop() {
  const auto lowest = ranks_.begin();
  const uint32_t rank = lowest->first;
  Positions& positions = lowest->second;
  auto& items = positions.items;
  uint32_t position = 0;
  if (positions.is_heap) {
    std::pop_heap(items.begin(), items.end(), std::greater<>());
    position = items.back();
    items.pop_back();
  } else {
    position = items[positions.next++];
  }
  if (items.size() == (positions.is_heap ? 0 : positions.next)) ranks_.erase(lowest);
  return {rank, position};
}

void BpeMerger::merge(std::span<const TokenId> symbols, std::vector<TokenId>& out) {
  if (symbols.size() < kLongPiece) {
    merge_short(symbols, out);
  } else {
    merge_long(symbols, out);
  }
}

void BpeMerger::merge_short(std::span<const TokenId> symbols, std::vector<TokenId>& out) {
  tokens_.assign(symbols.begin(), symbols.end());
  ranks_.clear();  // ranks_[i]: of the merge of tokens i and i + 1
  for (size_t i = 0; i + 1 < tokens_.size(); ++i) {
    ranks_.push_back(merges_.find(tokens_[i], tokens_[i + 1]).rank);
  }
  while (!ranks_.empty()) {
    const auto lowest = std::min_element(ranks_.begin(), ranks_.end());
    if (*lowest == Merge::kNone) break;
    const auto at = static_cast<size_t>(lowest - ranks_.begin());
    tokens_[at] = merges_.find(tokens_[at], tokens_[at + 1]).token;
    tokens_.erase(tokens_.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    ranks_.erase(lowest);
    if (at < ranks_.size()) ranks_[at] = merges_.find(tokens_[at], tokens_[at + 1]).rank;
    if (at > 0) ranks_[at - 1] = merges_.find(tokens_[at - 1], tokens_[at]).rank;
  }
  out.insert(out.end(), tokens_.begin(), tokens_.end());
}

// Looks up the merge of `at` with its right neighbour, and queues it.
void BpeMerger::update(uint32_t at) {
  Node& node = nodes_[at];
  node.rank = Merge::kNone;
  if (node.right == kEnd) return;
  node.rank = merges_.find(node.token, nodes_[node.right].token).rank;
  if (node.rank == Merge::kNone) return;
  queue_.push(node.rank, at);
}

void BpeMerger::merge_with_right(uint32_t at) {
  Node& node = nodes_[at];
  Node& gone = nodes_[node.right];
  node.token = merges_.find(node.token, gone.token).token;
  node.right = gone.right;
  if (node.right != kEnd) nodes_[node.right].left = at;
  gone.rank = Merge::kNone;
}

void BpeMerger::merge_long(std::span<const TokenId> symbols, std::vector<TokenId>& out) {
  if (symbols.empty()) return;
  merge_nodes(symbols);
  for (uint32_t i = 0; i != kEnd; i = nodes_[i].right) out.push_back(nodes_[i].token);
}

void BpeMerger::merge_with_starts(std::span<const TokenId> symbols, std::vector<TokenId>& out,
                                  std::vector<uint32_t>& starts) {
  if (symbols.empty()) return;
  merge_nodes(symbols);
  for (uint32_t i = 0; i != kEnd; i = nodes_[i].right) {
    out.push_back(nodes_[i].token);
    starts.push_back(i);
  }
}

void BpeMerger::merge_nodes(std::span<const TokenId> symbols) {
  const auto count = static_cast<uint32_t>(symbols.size());
  nodes_.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    nodes_[i] = {symbols[i], i - 1, i + 1 < count ? i + 1 : kEnd, Merge::kNone};
  }
  for (uint32_t i = 0; i < count; ++i) update(i);
  while (!queue_.empty()) {
    const RankQueue::Item item = queue_.pop();
    if (nodes_[item.position].rank != item.rank) continue;  // out of date
    merge_with_right(item.position);
    update(item.position);
    if (item.position != 0) update(nodes_[item.position].left);
  }
}

}  // namespace paceline
