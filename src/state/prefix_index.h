// PrefixIndex finds the blocks that hold the keys and values of a prefix's tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/siphash.h"
#include "state/block_pool.h"
#include "state/prefix_scope.h"

namespace paceline {

using NodeId = int32_t;
constexpr NodeId kNoNode = -1;

// A tree: a node is one block's worth of tokens after its parent's, with a block in each cache
// group that still holds them. A node lives as long as it has a block, a child or a pin. All memory
// is allocated at construction; while no node is unused, insert() adds nothing.
class PrefixIndex {
 public:
  PrefixIndex(int64_t block_size, std::span<const int64_t> group_num_blocks, const SipKey& key);

  // The hash of the scope, the root of its chains.
  Hash128 root(const PrefixScope& scope) const;
  // The hash of a chain one block longer: over its parent's hash and its own `block_size` tokens.
  Hash128 extend(const Hash128& parent, std::span<const int32_t> tokens) const;

  // The node of `hash`, if its parent and its tokens are these (they are compared), else kNoNode.
  NodeId find(const Hash128& hash, NodeId parent, std::span<const int32_t> tokens) const;
  // The same, and adds it when it is missing. kNoNode when no node is unused, or another chain has
  // that hash.
  NodeId insert(const Hash128& hash, NodeId parent, std::span<const int32_t> tokens);
  // A pinned node and its parents stay, with or without blocks.
  void pin(NodeId node);
  void unpin(NodeId node);

  // kNoNode for a chain's first node.
  NodeId parent(NodeId node) const { return at(node).parent; }
  BlockId block(NodeId node, int group) const { return blocks_[index_of(node, group)]; }
  // The node must have no block in that group.
  void set_block(NodeId node, int group, BlockId block);
  // Removes a block whose content is lost; it must be in the index.
  void forget(int group, BlockId block);

  int64_t num_nodes() const { return num_nodes_; }
  // Grows whenever a block is added: until then a repeated search finds nothing more.
  uint64_t version() const { return version_; }

  // PL_CHECKs the tree, and that it has exactly the published blocks of a group.
  void check_integrity(int group, const BlockPool& pool) const;

 private:
  struct Node {
    Hash128 hash;
    NodeId parent = kNoNode;
    NodeId next = kNoNode;  // in its bucket, or among the unused
    int32_t uses = 0;       // blocks + children + pins
    bool live = false;
  };

  size_t index_of(NodeId node, int group) const {
    return static_cast<size_t>(node) * num_groups_ + static_cast<size_t>(group);
  }
  Node& at(NodeId node) { return nodes_[static_cast<size_t>(node)]; }
  const Node& at(NodeId node) const { return nodes_[static_cast<size_t>(node)]; }
  std::span<const int32_t> tokens_of(NodeId node) const;
  size_t bucket_of(const Hash128& hash) const { return hash.low & (buckets_.size() - 1); }
  void drop_use(NodeId node);

  int64_t block_size_;
  size_t num_groups_;
  SipKey key_;
  std::vector<Node> nodes_;
  std::vector<int32_t> tokens_;                     // [nodes, block_size]
  std::vector<BlockId> blocks_;                     // [nodes, groups]
  std::vector<std::vector<NodeId>> node_of_block_;  // per group, by block
  std::vector<NodeId> buckets_;                     // a power of two
  NodeId unused_ = kNoNode;
  int64_t num_nodes_ = 0;
  uint64_t version_ = 0;
};

}  // namespace paceline
