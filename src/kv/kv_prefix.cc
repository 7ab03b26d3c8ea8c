// KvCache's shared prefixes: finding, taking and publishing them, and the integrity check.
#include <algorithm>

#include "base/error.h"
#include "kv/kv_cache.h"

namespace paceline {
namespace {

std::span<const int32_t> block_tokens(std::span<const int32_t> tokens, int64_t index,
                                      int64_t block_size) {
  return tokens.subspan(static_cast<size_t>(index * block_size), static_cast<size_t>(block_size));
}

}  // namespace

void KvCache::find_prefix(std::span<const Hash128> hashes, std::span<const int32_t> tokens,
                          int64_t limit, PrefixHit& hit) const {
  hit.length = 0;
  hit.revived.assign(groups_.size(), 0);
  const int64_t num_blocks =
      std::min(static_cast<int64_t>(hashes.size()),
               std::min(limit, static_cast<int64_t>(tokens.size())) / block_size_);
  // Per group, the first block of the unbroken run that ends here.
  std::vector<int64_t>& run_begins = hit.revived;
  NodeId node = kNoNode;
  for (int64_t i = 0; i < num_blocks; ++i) {
    node =
        prefixes_.find(hashes[static_cast<size_t>(i)], node, block_tokens(tokens, i, block_size_));
    if (node == kNoNode) break;
    bool usable = true;
    const int64_t length = (i + 1) * block_size_;
    for (int g = 0; g < num_groups(); ++g) {
      if (prefixes_.block(node, g) == kNoBlock) run_begins[static_cast<size_t>(g)] = i + 1;
      usable = usable && run_begins[static_cast<size_t>(g)] <= first_block_seen(g, length);
    }
    if (usable) hit.length = length;
  }
  hit.revived.assign(groups_.size(), 0);
  node = kNoNode;
  for (int64_t i = 0; i < hit.length / block_size_; ++i) {
    node =
        prefixes_.find(hashes[static_cast<size_t>(i)], node, block_tokens(tokens, i, block_size_));
    for (int g = 0; g < num_groups(); ++g) {
      if (i < first_block_seen(g, hit.length)) continue;
      const bool held = pool(g).reference_count(prefixes_.block(node, g)) > 0;
      hit.revived[static_cast<size_t>(g)] += held ? 0 : 1;
    }
  }
}

void KvCache::take_prefix(SequenceBlocks& sequence, std::span<const Hash128> hashes,
                          std::span<const int32_t> tokens, int64_t length) {
  PL_CHECK(sequence.cache_ == this && sequence.length() == 0,
           "a prefix is taken by a new sequence");
  PL_CHECK(length % block_size_ == 0, "a prefix is whole blocks");
  if (length == 0) return;
  NodeId node = kNoNode;
  for (int64_t i = 0; i < length / block_size_; ++i) {
    node =
        prefixes_.find(hashes[static_cast<size_t>(i)], node, block_tokens(tokens, i, block_size_));
    PL_CHECK(node != kNoNode, "the prefix was found before");
    for (int g = 0; g < num_groups(); ++g) {
      auto& own = sequence.groups_[static_cast<size_t>(g)];
      own.first_kept = first_block_seen(g, length);
      own.length = length;
      if (i < own.first_kept) {
        own.table.push_back(kNoBlock);
        continue;
      }
      own.table.push_back(prefixes_.block(node, g));
      PL_CHECK(own.table.back() != kNoBlock, "the prefix was whole before");
      pools_[static_cast<size_t>(g)].share(own.table.back());
    }
  }
  prefixes_.pin(node);
  sequence.tail_ = node;
  sequence.num_published_ = length / block_size_;
}

void KvCache::publish(SequenceBlocks& sequence, std::span<const Hash128> hashes,
                      std::span<const int32_t> tokens, int64_t num_computed, bool keep) {
  PL_CHECK(sequence.cache_ == this, "the sequence belongs to another cache");
  const int64_t num_full =
      std::min(num_computed / block_size_, static_cast<int64_t>(hashes.size()));
  while (sequence.num_published_ < num_full && !sequence.publishing_ended_) {
    const int64_t i = sequence.num_published_;
    const NodeId node = prefixes_.insert(hashes[static_cast<size_t>(i)], sequence.tail_,
                                         block_tokens(tokens, i, block_size_));
    if (node == kNoNode) {
      sequence.publishing_ended_ = true;
      return;
    }
    prefixes_.pin(node);
    if (sequence.tail_ != kNoNode) prefixes_.unpin(sequence.tail_);
    sequence.tail_ = node;
    ++sequence.num_published_;
    for (int g = 0; g < num_groups(); ++g) {
      const BlockId block = sequence.table(g)[static_cast<size_t>(i)];
      if (block == kNoBlock) continue;
      auto transient = transient_[static_cast<size_t>(g)].begin();
      const BlockId known = prefixes_.block(node, g);
      if (known != kNoBlock) {  // one sequence with `keep` is enough
        if (keep) transient[known] = false;
        continue;
      }
      prefixes_.set_block(node, g, block);
      pools_[static_cast<size_t>(g)].publish(block);
      transient[block] = !keep;
    }
  }
}

void KvCache::count_holders(const SequenceBlocks& sequence, int group,
                            std::vector<int64_t>& holders) const {
  const auto table = sequence.table(group);
  const int64_t first_kept = sequence.first_kept(group);
  const auto num_blocks = static_cast<int64_t>(table.size());
  PL_CHECK(num_blocks == (sequence.length(group) + block_size_ - 1) / block_size_,
           "a table is longer or shorter than its sequence");
  PL_CHECK(first_kept >= 0 && first_kept <= num_blocks, "more blocks were given back than held");
  PL_CHECK(first_kept == 0 || groups_[static_cast<size_t>(group)].window > 0,
           "a group without a window gave back a block");
  for (int64_t i = 0; i < num_blocks; ++i) {
    const BlockId block = table[static_cast<size_t>(i)];
    PL_CHECK((block == kNoBlock) == (i < first_kept), "a table has a hole outside the passed part");
    if (block == kNoBlock) continue;
    PL_CHECK(block >= 0 && block < pool(group).num_blocks(), "a table names no block of its pool");
    ++holders[static_cast<size_t>(block)];
  }
}

void KvCache::check_integrity(std::span<const SequenceBlocks* const> live) const {
  for (int group = 0; group < num_groups(); ++group) {
    pool(group).check_integrity();
    prefixes_.check_integrity(group, pool(group));
    std::vector<int64_t> holders(static_cast<size_t>(pool(group).num_blocks()), 0);
    for (const SequenceBlocks* sequence : live) {
      PL_CHECK(sequence->cache_ == this, "the sequence belongs to another cache");
      count_holders(*sequence, group, holders);
    }
    for (size_t block = 0; block < holders.size(); ++block) {
      PL_CHECK(holders[block] == pool(group).reference_count(static_cast<BlockId>(block)),
               "a block's count differs from the number of tables that name it");
    }
  }
}

}  // namespace paceline
