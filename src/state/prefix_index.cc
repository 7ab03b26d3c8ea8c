#include "state/prefix_index.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/error.h"

namespace paceline {
namespace {

// No tokens hash this word, so a root never equals the hash of a block.
constexpr uint64_t kRootMark = 0x746f6f7220656874;

// Room for a node per block, and for nodes without blocks that lead to others.
size_t node_capacity(std::span<const int64_t> group_num_blocks) {
  size_t blocks = 0;
  for (const int64_t count : group_num_blocks) blocks += static_cast<size_t>(count);
  return blocks + blocks / 2 + 16;
}

}  // namespace

PrefixIndex::PrefixIndex(int64_t block_size, std::span<const int64_t> group_num_blocks,
                         const SipKey& key)
    : block_size_(block_size), num_groups_(group_num_blocks.size()), key_(key) {
  const size_t capacity = node_capacity(group_num_blocks);
  nodes_.resize(capacity);
  tokens_.resize(capacity * static_cast<size_t>(block_size));
  blocks_.assign(capacity * num_groups_, kNoBlock);
  buckets_.assign(std::bit_ceil(capacity), kNoNode);
  for (const int64_t count : group_num_blocks) {
    node_of_block_.emplace_back(static_cast<size_t>(count), kNoNode);
  }
  for (size_t node = capacity; node-- > 0;) {
    nodes_[node].next = unused_;
    unused_ = static_cast<NodeId>(node);
  }
}

Hash128 PrefixIndex::root(const PrefixScope& scope) const {
  const std::array words = {kRootMark,          scope.adapter.low,
                            scope.adapter.high, scope.salt.low,
                            scope.salt.high,    static_cast<uint64_t>(scope.stretched)};
  return siphash128(key_, words);
}

Hash128 PrefixIndex::extend(const Hash128& parent, std::span<const int32_t> tokens) const {
  PL_CHECK(static_cast<int64_t>(tokens.size()) == block_size_, "a chain grows by whole blocks");
  constexpr size_t kAtOnce = 64;
  std::array<uint64_t, kAtOnce + 2> words;
  Hash128 hash = parent;
  for (size_t begin = 0; begin < tokens.size(); begin += kAtOnce) {
    const auto part = tokens.subspan(begin, std::min(kAtOnce, tokens.size() - begin));
    words[0] = hash.low;
    words[1] = hash.high;
    for (size_t i = 0; i < part.size(); ++i) words[i + 2] = static_cast<uint32_t>(part[i]);
    hash = siphash128(key_, std::span(words).first(part.size() + 2));
  }
  return hash;
}

std::span<const int32_t> PrefixIndex::tokens_of(NodeId node) const {
  const auto size = static_cast<size_t>(block_size_);
  return std::span(tokens_).subspan(static_cast<size_t>(node) * size, size);
}

NodeId PrefixIndex::find(const Hash128& hash, NodeId parent,
                         std::span<const int32_t> tokens) const {
  for (NodeId node = buckets_[bucket_of(hash)]; node != kNoNode; node = at(node).next) {
    if (at(node).hash != hash) continue;
    const auto own = tokens_of(node);
    const bool same = at(node).parent == parent &&
                      std::equal(own.begin(), own.end(), tokens.begin(), tokens.end());
    return same ? node : kNoNode;
  }
  return kNoNode;
}

NodeId PrefixIndex::insert(const Hash128& hash, NodeId parent, std::span<const int32_t> tokens) {
  const size_t bucket = bucket_of(hash);
  for (NodeId node = buckets_[bucket]; node != kNoNode; node = at(node).next) {
    if (at(node).hash == hash) return find(hash, parent, tokens);
  }
  if (unused_ == kNoNode) return kNoNode;
  const NodeId node = unused_;
  unused_ = at(node).next;
  at(node) = {.hash = hash, .parent = parent, .next = buckets_[bucket], .live = true};
  buckets_[bucket] = node;
  std::copy(tokens.begin(), tokens.end(),
            tokens_.begin() + static_cast<int64_t>(node) * block_size_);
  if (parent != kNoNode) ++at(parent).uses;
  ++num_nodes_;
  return node;
}

void PrefixIndex::pin(NodeId node) { ++at(node).uses; }

void PrefixIndex::unpin(NodeId node) { drop_use(node); }

void PrefixIndex::drop_use(NodeId node) {
  while (node != kNoNode) {
    PL_CHECK(at(node).live && at(node).uses > 0, "a prefix node was let go twice");
    if (--at(node).uses > 0) return;
    NodeId* link = &buckets_[bucket_of(at(node).hash)];
    while (*link != node) link = &at(*link).next;
    *link = at(node).next;
    const NodeId parent = at(node).parent;
    at(node) = {.next = unused_};
    unused_ = node;
    --num_nodes_;
    node = parent;
  }
}

void PrefixIndex::set_block(NodeId node, int group, BlockId block) {
  BlockId& own = blocks_[index_of(node, group)];
  PL_CHECK(own == kNoBlock, "the node has a block of this group already");
  own = block;
  node_of_block_[static_cast<size_t>(group)][static_cast<size_t>(block)] = node;
  ++at(node).uses;
  ++version_;
}

void PrefixIndex::forget(int group, BlockId block) {
  NodeId& known = node_of_block_[static_cast<size_t>(group)][static_cast<size_t>(block)];
  PL_CHECK(known != kNoNode, "the block isn't known");
  const NodeId node = known;
  known = kNoNode;
  blocks_[index_of(node, group)] = kNoBlock;
  drop_use(node);
}

void PrefixIndex::check_integrity(int group, const BlockPool& pool) const {
  const auto& nodes = node_of_block_[static_cast<size_t>(group)];
  for (size_t block = 0; block < nodes.size(); ++block) {
    const auto id = static_cast<BlockId>(block);
    PL_CHECK(pool.is_published(id) == (nodes[block] != kNoNode),
             "a block is published and not in the index, or the other way round");
    if (nodes[block] == kNoNode) continue;
    PL_CHECK(at(nodes[block]).live, "a block points at a node that has gone");
    PL_CHECK(this->block(nodes[block], group) == id, "a node points at another block");
  }
  int64_t live = 0;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].live) continue;
    ++live;
    const NodeId parent = nodes_[i].parent;
    PL_CHECK(parent == kNoNode || at(parent).live, "a node's parent has gone");
  }
  PL_CHECK(live == num_nodes_, "more or fewer nodes than counted");
}

}  // namespace paceline
