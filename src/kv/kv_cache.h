// KvCache gives every sequence one block table per cache group; appending is all or nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kv/block_pool.h"

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

class KvCache;

// One sequence's hold on its blocks: gives them back when it ends. Movable; the cache must outlive
// it.
class SequenceBlocks {
 public:
  SequenceBlocks() = default;
  explicit SequenceBlocks(KvCache& cache);
  ~SequenceBlocks();
  SequenceBlocks(SequenceBlocks&& other) noexcept;
  SequenceBlocks& operator=(SequenceBlocks&& other) noexcept;
  SequenceBlocks(const SequenceBlocks&) = delete;
  SequenceBlocks& operator=(const SequenceBlocks&) = delete;

  // Token slots reserved so far.
  int64_t length() const { return length_; }
  // Block index i holds positions [i * block_size, (i + 1) * block_size); kNoBlock where the window
  // has passed.
  std::span<const BlockId> table(int group) const { return tables_[static_cast<size_t>(group)]; }
  // Flat slot (block * block_size + offset) of `position` in the group's pool.
  int64_t slot(int group, int64_t position) const;

 private:
  friend class KvCache;
  void release_all() noexcept;

  KvCache* cache_ = nullptr;
  int64_t length_ = 0;
  std::vector<std::vector<BlockId>> tables_;  // per group: ceil(length / block_size) entries
  std::vector<int64_t> first_kept_;           // per group: blocks below this index were given back
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

  // Reserves slots for `count` more tokens: first the slack of the last block, then
  // ceil(rest / block_size) new blocks, in every group or in none. On failure nothing has changed,
  // and the answer is the first group that is short.
  std::optional<OutOfBlocks> append(SequenceBlocks& sequence, int64_t count);

  // The next row to be computed is `position` (at most the length): windowed groups give back
  // blocks that lie wholly before its window [position - window + 1, position]. Called before the
  // append that follows, it bounds a group by blocks_for_window.
  void pass(SequenceBlocks& sequence, int64_t position);

  // Gives back the slots from `length` on (a rejected draft). Blocks the window passed stay gone,
  // so `length` must not lie more than a window's slack back (PL_CHECK): row `length` sees only
  // kept ones.
  void truncate(SequenceBlocks& sequence, int64_t length);

  // The most tokens one sequence can hold when nobody else holds any, whatever its steps of at most
  // `chunk` tokens; INT64_MAX when every group is windowed and large enough for any length.
  int64_t capacity_tokens(int64_t chunk) const;

  // The most blocks a sequence ever holds in a windowed group when it passes and appends in steps
  // of at most `chunk` tokens.
  static int64_t blocks_for_window(int64_t window, int64_t chunk, int64_t block_size);

  // PL_CHECKs pools and that every block's count equals the number of tables that name it.
  void check_integrity(std::span<const SequenceBlocks* const> live) const;

 private:
  friend class SequenceBlocks;

  int64_t blocks_needed(const SequenceBlocks& sequence, int64_t count) const;
  void count_holders(const SequenceBlocks& sequence, int group,
                     std::vector<int64_t>& holders) const;

  int64_t block_size_;
  std::vector<CacheGroup> groups_;
  std::vector<BlockPool> pools_;
};

}  // namespace paceline
