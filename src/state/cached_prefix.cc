// StateCache's shared prefixes: finding, taking and publishing them, and the integrity check.
#include <algorithm>

#include "base/error.h"
#include "state/state_cache.h"

namespace paceline {
namespace {

std::span<const int32_t> block_tokens(std::span<const int32_t> tokens, int64_t index,
                                      int64_t block_size) {
  return tokens.subspan(static_cast<size_t>(index * block_size), static_cast<size_t>(block_size));
}

}  // namespace

int64_t StateCache::first_block_needed(int group, int64_t length) const {
  return this->group(group).is_recurrent ? length / block_size_ - 1
                                         : first_block_seen(group, length);
}

void StateCache::find_prefix(std::span<const Hash128> hashes, std::span<const int32_t> tokens,
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
      if (g == open_group_) continue;
      if (prefixes_.block(node, g) == kNoBlock) run_begins[static_cast<size_t>(g)] = i + 1;
      usable = usable && run_begins[static_cast<size_t>(g)] <= first_block_needed(g, length);
    }
    if (usable) hit.length = length;
  }
  hit.revived.assign(groups_.size(), 0);
  node = kNoNode;
  for (int64_t i = 0; i < hit.length / block_size_; ++i) {
    node =
        prefixes_.find(hashes[static_cast<size_t>(i)], node, block_tokens(tokens, i, block_size_));
    for (int g = 0; g < num_groups(); ++g) {
      if (group(g).is_recurrent || i < first_block_seen(g, hit.length)) continue;
      const bool held = pool(g).reference_count(prefixes_.block(node, g)) > 0;
      hit.revived[static_cast<size_t>(g)] += held ? 0 : 1;
    }
  }
}

void StateCache::take_prefix(SequenceBlocks& sequence, std::span<const Hash128> hashes,
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
      if (group(g).is_recurrent) continue;
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
  for (int g = 0; g < num_groups(); ++g) {
    if (!group(g).is_recurrent) continue;
    auto& own = sequence.groups_[static_cast<size_t>(g)];
    own.length = length;
    if (g == open_group_) continue;  // no chunk is open
    const BlockId state = prefixes_.block(node, g);
    PL_CHECK(state != kNoBlock, "the prefix had a state before");
    own.table.push_back(state);
    pools_[static_cast<size_t>(g)].share(state);
  }
}

void StateCache::save_state(SequenceBlocks& sequence, int64_t position) {
  PL_CHECK(position % block_size_ == 0, "a state is saved at a block boundary");
  PL_CHECK(sequence.saves_.empty() || sequence.saves_.back().position < position,
           "states are saved in ascending positions");
  for (int g = 0; g < num_groups(); ++g) {
    if (!holds_states(g) || pool(g).num_free() == 0) continue;
    sequence.saves_.push_back({.position = position, .group = g, .block = acquire(g)});
  }
}

void StateCache::publish_saves(SequenceBlocks& sequence, NodeId node, int64_t position, bool keep) {
  auto& saves = sequence.saves_;
  while (!saves.empty() && saves.front().position <= position) {
    const SavedState save = saves.front();
    saves.erase(saves.begin());
    if (keep && save.position == position && prefixes_.block(node, save.group) == kNoBlock) {
      set_published(node, save.group, save.block, keep);
    }
    release(save.group, save.block);
  }
}

void StateCache::publish_end(SequenceBlocks& sequence, int64_t position, bool keep) {
  if (position == 0 || position % block_size_ != 0 || sequence.publishing_ended_) return;
  NodeId node = sequence.tail_;
  int64_t num_blocks = sequence.num_published_;
  for (; node != kNoNode && num_blocks > position / block_size_; --num_blocks) {
    node = prefixes_.parent(node);
  }
  if (node == kNoNode || num_blocks * block_size_ != position) return;
  for (int g = 0; g < num_groups(); ++g) {
    if (!holds_states(g) || sequence.table(g).empty()) continue;
    const BlockId own = sequence.table(g).front();
    if (pool(g).reference_count(own) > 1 || prefixes_.block(node, g) != kNoBlock) continue;
    set_published(node, g, own, keep);
  }
}

void StateCache::set_published(NodeId node, int group, BlockId block, bool keep) {
  prefixes_.set_block(node, group, block);
  pools_[static_cast<size_t>(group)].publish(block);
  transient_[static_cast<size_t>(group)][static_cast<size_t>(block)] = !keep;
}

void StateCache::publish(SequenceBlocks& sequence, std::span<const Hash128> hashes,
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
      break;
    }
    prefixes_.pin(node);
    if (sequence.tail_ != kNoNode) prefixes_.unpin(sequence.tail_);
    sequence.tail_ = node;
    ++sequence.num_published_;
    for (int g = 0; g < num_groups(); ++g) {
      if (group(g).is_recurrent) continue;
      const BlockId block = sequence.table(g)[static_cast<size_t>(i)];
      if (block == kNoBlock) continue;
      auto transient = transient_[static_cast<size_t>(g)].begin();
      const BlockId known = prefixes_.block(node, g);
      if (known != kNoBlock) {  // one sequence with `keep` is enough
        if (keep) transient[known] = false;
        continue;
      }
      set_published(node, g, block, keep);
    }
    publish_saves(sequence, node, sequence.num_published_ * block_size_, keep);
  }
  publish_saves(sequence, kNoNode, num_computed, false);  // what can't be published any more
}

void StateCache::count_holders(const SequenceBlocks& sequence, int group,
                               std::vector<int64_t>& holders) const {
  const auto table = sequence.table(group);
  const int64_t first_kept = sequence.first_kept(group);
  const auto num_blocks = static_cast<int64_t>(table.size());
  const int64_t size = block_size(group);
  const int64_t length = sequence.length(group);
  const bool may_lack_rows = group == open_group_ && num_blocks == 0;
  PL_CHECK(may_lack_rows || num_blocks == length / size + (length % size != 0 ? 1 : 0),
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
  for (const SavedState& save : sequence.saves()) {
    if (save.group == group) ++holders[static_cast<size_t>(save.block)];
  }
}

void StateCache::check_integrity(std::span<const SequenceBlocks* const> live) const {
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
