#include "state/prefix_index.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace paceline {
namespace {

constexpr SipKey kKey = {.low = 1, .high = 2};
constexpr int64_t kNumBlocks[] = {4, 4};
constexpr std::array<int32_t, 2> kTokens = {7, 8};
constexpr std::array<int32_t, 2> kOtherTokens = {7, 9};

TEST(PrefixIndex, EveryPartOfAScopeAndOfTheKeyChangesTheRoot) {
  const PrefixIndex index(2, kNumBlocks, kKey);
  const PrefixScope scope{.adapter = {.low = 1, .high = 5}, .salt = {.low = 2, .high = 3}};
  const Hash128 root = index.root(scope);
  EXPECT_EQ(index.root(scope), root);
  for (const PrefixScope& other :
       {PrefixScope{.adapter = {.low = 9, .high = 5}, .salt = {.low = 2, .high = 3}},
        PrefixScope{.adapter = {.low = 1, .high = 9}, .salt = {.low = 2, .high = 3}},
        PrefixScope{.adapter = {.low = 1, .high = 5}, .salt = {.low = 9, .high = 3}},
        PrefixScope{.adapter = {.low = 1, .high = 5}, .salt = {.low = 2, .high = 9}},
        PrefixScope{.adapter = {.low = 1, .high = 5}, .salt = {.low = 3, .high = 2}}}) {
    EXPECT_NE(index.root(other), root);
  }
  EXPECT_NE(PrefixIndex(2, kNumBlocks, {.low = 2, .high = 2}).root(scope), root);
  EXPECT_NE(PrefixIndex(2, kNumBlocks, {.low = 1, .high = 1}).root(scope), root);
}

TEST(PrefixIndex, EveryTokenAndBothHalvesOfTheParentChangeTheHash) {
  for (const size_t size : {1, 2, 64, 65, 130}) {
    const PrefixIndex index(static_cast<int64_t>(size), kNumBlocks, kKey);
    std::vector<int32_t> tokens(size, 5);
    const Hash128 hash = index.extend({.low = 1, .high = 2}, tokens);
    EXPECT_NE(index.extend({.low = 3, .high = 2}, tokens), hash);
    EXPECT_NE(index.extend({.low = 1, .high = 3}, tokens), hash);
    for (int32_t& token : tokens) {
      token = 6;
      EXPECT_NE(index.extend({.low = 1, .high = 2}, tokens), hash) << &token - tokens.data();
      token = 5;
    }
    EXPECT_EQ(index.extend({.low = 1, .high = 2}, tokens), hash);
  }
}

// Colliding hashes don't count as equal prefixes: parents and tokens are compared.
TEST(PrefixIndex, AHashThatMeetsAnotherIsNeitherFoundNorAdded) {
  PrefixIndex index(2, kNumBlocks, kKey);
  const Hash128 hash{.low = 40, .high = 1}, same_bucket{.low = 40, .high = 2};
  const NodeId node = index.insert(hash, kNoNode, kTokens);
  ASSERT_NE(node, kNoNode);
  EXPECT_EQ(index.find(hash, kNoNode, kTokens), node);
  EXPECT_EQ(index.insert(hash, kNoNode, kTokens), node);
  EXPECT_EQ(index.num_nodes(), 1);
  EXPECT_EQ(index.find(hash, kNoNode, kOtherTokens), kNoNode);
  EXPECT_EQ(index.insert(hash, kNoNode, kOtherTokens), kNoNode);
  EXPECT_EQ(index.find(hash, node, kTokens), kNoNode);
  EXPECT_EQ(index.insert(hash, node, kTokens), kNoNode);
  const NodeId neighbour = index.insert(same_bucket, node, kOtherTokens);
  ASSERT_NE(neighbour, kNoNode);
  EXPECT_NE(neighbour, node);
  EXPECT_EQ(index.find(hash, kNoNode, kTokens), node);
  EXPECT_EQ(index.find(same_bucket, node, kOtherTokens), neighbour);
}

TEST(PrefixIndex, ANodeLivesAsLongAsABlockAChildOrAPin) {
  PrefixIndex index(2, kNumBlocks, kKey);
  const Hash128 first{.low = 1, .high = 1}, second{.low = 2, .high = 2};
  const NodeId parent = index.insert(first, kNoNode, kTokens);
  const NodeId child = index.insert(second, parent, kTokens);
  index.pin(child);
  index.set_block(child, 1, 3);
  index.set_block(parent, 0, 2);
  EXPECT_EQ(index.block(child, 1), 3);
  EXPECT_EQ(index.block(child, 0), kNoBlock);
  EXPECT_EQ(index.version(), 2u);
  index.forget(0, 2);
  EXPECT_EQ(index.block(parent, 0), kNoBlock);
  EXPECT_EQ(index.find(first, kNoNode, kTokens), parent) << "it leads to its child";
  index.forget(1, 3);
  EXPECT_EQ(index.find(second, parent, kTokens), child) << "it is pinned";
  index.unpin(child);
  EXPECT_EQ(index.num_nodes(), 0);
  EXPECT_EQ(index.find(first, kNoNode, kTokens), kNoNode);
  EXPECT_EQ(index.find(second, parent, kTokens), kNoNode);
}

TEST(PrefixIndex, EveryBlockCanHaveANodeAndNodesThatWentAreUsedAgain) {
  PrefixIndex index(2, kNumBlocks, kKey);
  std::vector<NodeId> nodes;
  for (uint64_t i = 0;; ++i) {
    const NodeId node = index.insert({.low = i, .high = i}, kNoNode, kTokens);
    if (node == kNoNode) break;
    index.pin(node);
    nodes.push_back(node);
  }
  EXPECT_GE(nodes.size(), 8u) << "one per block";
  EXPECT_EQ(index.num_nodes(), static_cast<int64_t>(nodes.size()));
  for (uint64_t i = 0; i < nodes.size(); ++i)
    EXPECT_EQ(index.find({.low = i, .high = i}, kNoNode, kTokens), nodes[i]);
  index.unpin(nodes[3]);
  EXPECT_EQ(index.insert({.low = 1000, .high = 1}, kNoNode, kOtherTokens), nodes[3]);
  EXPECT_EQ(index.insert({.low = 1001, .high = 1}, kNoNode, kOtherTokens), kNoNode);
}

TEST(PrefixIndex, EveryBlockOfALargeCacheCanHaveANode) {
  constexpr int64_t kMany[] = {100, 40};
  PrefixIndex index(2, kMany, kKey);
  for (uint64_t i = 0; i < 140; ++i)
    EXPECT_NE(index.insert({.low = i, .high = i}, kNoNode, kTokens), kNoNode) << i;
}

TEST(PrefixIndexDeathTest, MisuseAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  PrefixIndex index(2, kNumBlocks, kKey);
  const NodeId node = index.insert({.low = 1, .high = 1}, kNoNode, kTokens);
  index.set_block(node, 0, 1);
  EXPECT_DEATH(index.set_block(node, 0, 2), "a block of this group already");
  EXPECT_DEATH(index.forget(0, 2), "isn't known");
  EXPECT_DEATH((void)index.extend({}, std::span(kTokens).first(1)), "whole blocks");
  index.forget(0, 1);
  EXPECT_DEATH(index.unpin(node), "let go twice");
}

}  // namespace
}  // namespace paceline
