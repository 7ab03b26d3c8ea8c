// KvCache gives every sequence one block table per cache group, and shares equal prefixes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kv/block_pool.h"
#include "kv/prefix_index.h"
#include "kv/sequence_blocks.h"

namespace paceline {

// Layers with the same attention window share a group.
struct CacheGroup {
  int64_t window =
      0;  // 0: every position is kept; else the last `window` before a row, row included
  int64_t num_blocks = 0;  // size of the group's pool
};

struct OutOfBlocks {
  int group = 0;
  int64_t needed = 0;
  int64_t free = 0;
};

// The keys and values of a block that must be copied before the next step writes.
struct BlockCopy {
  int group = 0;
  BlockId from = kNoBlock;
  BlockId to = kNoBlock;
  bool operator==(const BlockCopy&) const = default;
};

// What a prefix search found: the longest reusable prefix, and how many of its blocks in each group
// nobody holds now, so that taking them makes as many fewer free.
struct PrefixHit {
  int64_t length = 0;  // tokens, a multiple of the block size
  std::vector<int64_t> revived;
};

// Integers only: the tensors behind the slots belong to the engine. One thread. Sequences point at
// their cache, so it stays where it is.
class KvCache {
 public:
  KvCache(int64_t block_size, std::span<const CacheGroup> groups);
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  int64_t block_size() const { return block_size_; }
  int num_groups() const { return static_cast<int>(groups_.size()); }
  const CacheGroup& group(int index) const { return groups_[static_cast<size_t>(index)]; }
  const BlockPool& pool(int group) const { return pools_[static_cast<size_t>(group)]; }
  const PrefixIndex& prefixes() const { return prefixes_; }

  // Reserves slots for `count` more tokens: first the slack of the last block, then
  // ceil(rest / block_size) new blocks, in every group or in none. A last block that others hold
  // too is replaced by a copy (see copies()). On failure nothing has changed, and the answer is the
  // first group that is short.
  std::optional<OutOfBlocks> append(SequenceBlocks& sequence, int64_t count);
  // Likewise up to a total length of its own for the groups without a window and those with one;
  // a group that is as long already is left as it is.
  std::optional<OutOfBlocks> reserve(SequenceBlocks& sequence, int64_t full_length,
                                     int64_t windowed_length);
  // The blocks that `reserve` would take from a group.
  int64_t blocks_to_reserve(const SequenceBlocks& sequence, int group, int64_t length) const;

  // Whether growing to `length` slots writes into a last block that others hold or may find.
  bool copies_last_block(const SequenceBlocks& sequence, int group, int64_t length) const;

  // What must be copied before anything is written, in this order; append and reserve add to it.
  std::span<const BlockCopy> copies() const { return copies_; }
  void clear_copies() { copies_.clear(); }

  // The next row to be computed is `position` (at most the length): windowed groups give back
  // blocks that lie wholly before its window [position - window + 1, position]. Called before the
  // append that follows, it bounds a group by blocks_for_window.
  void pass(SequenceBlocks& sequence, int64_t position);

  // Gives back the slots from `length` on (a rejected draft). Blocks the window passed stay gone,
  // so `length` must not lie more than a window's slack back (PL_CHECK): row `length` sees only
  // kept ones.
  void truncate(SequenceBlocks& sequence, int64_t length);

  // Another sequence with the same blocks; who writes first takes a copy of the last one. All
  // reserved slots must have been written: either sequence would write into the other's.
  SequenceBlocks fork(const SequenceBlocks& sequence);

  // The longest prefix of `tokens`, at most `limit` tokens of it, whose keys and values the cache
  // still has: the largest block boundary h for which groups without a window hold every block
  // below h and windowed groups every block that overlaps [h - window + 1, h). `hashes` are the
  // chain's, one per full block. Nothing changes.
  void find_prefix(std::span<const Hash128> hashes, std::span<const int32_t> tokens, int64_t limit,
                   PrefixHit& hit) const;
  // Makes an empty sequence hold the first `length` tokens that find_prefix found.
  void take_prefix(SequenceBlocks& sequence, std::span<const Hash128> hashes,
                   std::span<const int32_t> tokens, int64_t length);
  // Makes the sequence's full blocks below `num_computed` findable, for good or, with `keep` false,
  // only while somebody holds them.
  void publish(SequenceBlocks& sequence, std::span<const Hash128> hashes,
               std::span<const int32_t> tokens, int64_t num_computed, bool keep);

  // The most tokens one sequence can hold when nobody else holds any, whatever its steps of at most
  // `chunk` tokens; INT64_MAX when every group is windowed and large enough for any length.
  int64_t capacity_tokens(int64_t chunk) const;

  // The most blocks a sequence ever holds in a windowed group when it passes and appends in steps
  // of at most `chunk` tokens.
  static int64_t blocks_for_window(int64_t window, int64_t chunk, int64_t block_size);

  // PL_CHECKs pools and index, and that every block's count equals the number of tables that name
  // it.
  void check_integrity(std::span<const SequenceBlocks* const> live) const;

 private:
  friend class SequenceBlocks;

  void grow(SequenceBlocks& sequence, int group, int64_t length);
  BlockId acquire(int group);
  void release(int group, BlockId block);
  void release_all(SequenceBlocks& sequence) noexcept;
  int64_t length_wanted(const SequenceBlocks& sequence, int group, int64_t full_length,
                        int64_t windowed_length) const;
  void count_holders(const SequenceBlocks& sequence, int group,
                     std::vector<int64_t>& holders) const;

  int64_t block_size_;
  std::vector<CacheGroup> groups_;
  std::vector<BlockPool> pools_;
  PrefixIndex prefixes_;
  std::vector<std::vector<bool>> transient_;  // per group, by block: published only while held
  std::vector<BlockCopy> copies_;
};

}  // namespace paceline
