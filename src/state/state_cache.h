// StateCache gives every sequence one block table per cache group, and shares equal prefixes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "state/block_pool.h"
#include "state/prefix_index.h"
#include "state/sequence_blocks.h"

namespace paceline {

// A block of such a group holds the state after a sequence's rows, however many.
constexpr int64_t kWholeSequence = int64_t{1} << 62;

// Layers with the same attention window share a group, and so do those whose memory is a state.
// Beside a group of states, one may hold the rows of their open chunks: a sequence that computes
// has one of its blocks, which prefixes need not, as they end where no chunk is open.
struct CacheGroup {
  int64_t window =
      0;  // 0: every position is kept; else the last `window` before a row, row included
  int64_t num_blocks = 0;        // size of the group's pool
  bool is_recurrent = false;     // a sequence has one block, its state; others hold earlier states
  bool holds_open_rows = false;  // of a recurrent group: in place of states
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

// The longest reusable prefix that a search found, and how many of its blocks in each group are
// cached: taking the prefix makes that many fewer free.
struct PrefixHit {
  int64_t length = 0;  // tokens, a multiple of the block size
  std::vector<int64_t> revived;
};

// Integers only: KvStorage has the tensors behind the slots. One thread. Sequences point at their
// cache, which therefore can't be moved.
class StateCache {
 public:
  StateCache(int64_t block_size, std::span<const CacheGroup> groups);
  StateCache(const StateCache&) = delete;
  StateCache& operator=(const StateCache&) = delete;

  int64_t block_size() const { return block_size_; }
  // The positions that a block of the group holds.
  int64_t block_size(int group) const {
    return this->group(group).is_recurrent ? kWholeSequence : block_size_;
  }
  int num_groups() const { return static_cast<int>(groups_.size()); }
  const CacheGroup& group(int index) const { return groups_[static_cast<size_t>(index)]; }
  bool holds_states(int index) const {
    return group(index).is_recurrent && !group(index).holds_open_rows;
  }
  // The group of open rows, if there is one.
  std::optional<int> open_group() const { return open_group_; }
  const BlockPool& pool(int group) const { return pools_[static_cast<size_t>(group)]; }
  const PrefixIndex& prefixes() const { return prefixes_; }

  // Reserves slots for `count` more tokens: first the slack of the last block, then
  // ceil(rest / block_size) new blocks, in every group or in none. A shared last block is replaced
  // by a copy (see copies()). On failure nothing has changed; returns the first group that is
  // short.
  std::optional<OutOfBlocks> append(SequenceBlocks& sequence, int64_t count);
  // The same up to total lengths: one for groups without a window, one for windowed groups. A group
  // that is as long already stays unchanged.
  std::optional<OutOfBlocks> reserve(SequenceBlocks& sequence, int64_t full_length,
                                     int64_t windowed_length);
  // The blocks that `reserve` would take from a group.
  int64_t blocks_to_reserve(const SequenceBlocks& sequence, int group, int64_t length) const;

  // Whether growing to `length` slots writes into a last block that is shared or published. Open
  // rows of a chunk that begins there are replaced without a copy.
  bool copies_last_block(const SequenceBlocks& sequence, int group, int64_t length) const;

  // The copies to make before the next write, in this order; append and reserve add to them.
  std::span<const BlockCopy> copies() const { return copies_; }
  void clear_copies() { copies_.clear(); }

  // Releases the blocks of windowed groups that lie wholly before the window
  // [position - window + 1, position] of the next row to be computed (`position` is at most the
  // length). Called before the next append, it bounds a group by blocks_for_window.
  void release_outside_window(SequenceBlocks& sequence, int64_t position);

  // Releases the slots from `length` on (a rejected draft). Blocks that were released outside the
  // window are not restored, so row `length` must see kept blocks only (PL_CHECK).
  void truncate(SequenceBlocks& sequence, int64_t length);

  // Another sequence with the same blocks; the first one to write copies the last block. All
  // reserved slots must have been written: either sequence would write into the other's.
  SequenceBlocks fork(const SequenceBlocks& sequence);

  // The longest prefix of `tokens`, at most `limit` tokens of it, whose keys and values the cache
  // still has: the largest block boundary h for which groups without a window hold every block
  // below h, windowed groups every block that overlaps [h - window + 1, h) and recurrent groups the
  // state at h. `hashes` are the chain's, one per full block. Nothing changes.
  void find_prefix(std::span<const Hash128> hashes, std::span<const int32_t> tokens, int64_t limit,
                   PrefixHit& hit) const;
  // Makes an empty sequence hold the first `length` tokens that find_prefix found. It shares their
  // state until it grows. Then it gets a copy; where no block is free for one, the last sequence
  // that shares the state takes it over, and it is found no more.
  void take_prefix(SequenceBlocks& sequence, std::span<const Hash128> hashes,
                   std::span<const int32_t> tokens, int64_t length);
  // Takes a block of each recurrent group for the state at `position`, a block boundary that the
  // next step reaches: publish() makes it findable. Where none is free nothing is taken.
  void save_state(SequenceBlocks& sequence, int64_t position);
  bool has_states() const { return has_states_; }
  // Gives back the open rows of a sequence that computes no more.
  void release_open_rows(SequenceBlocks& sequence);
  // Makes the state of a sequence that computes no more findable: that at `position`, where it
  // advanced last. Rows after it are computed again. With `keep` false it is withdrawn at its last
  // release.
  void publish_end(SequenceBlocks& sequence, int64_t position, bool keep);

  // Publishes the sequence's full blocks below `num_computed`; with `keep` false they are withdrawn
  // at their last release.
  void publish(SequenceBlocks& sequence, std::span<const Hash128> hashes,
               std::span<const int32_t> tokens, int64_t num_computed, bool keep);

  // The most tokens that one sequence can hold alone in the cache, with steps of at most `chunk`
  // tokens; INT64_MAX when every group is windowed and large enough for any length.
  int64_t capacity_tokens(int64_t chunk) const;

  // The most blocks that a sequence holds in a windowed group when each step of at most `chunk`
  // tokens releases what lies outside the window and then appends.
  static int64_t blocks_for_window(int64_t window, int64_t chunk, int64_t block_size);

  // PL_CHECKs pools and index, and that every block's count equals the number of tables that hold
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
  // The first block that a group must hold so that the row at `length` can be computed.
  int64_t first_block_seen(int group, int64_t length) const;
  // The same of a prefix's published blocks: a recurrent group needs the last one's state alone.
  int64_t first_block_needed(int group, int64_t length) const;
  bool copies_content(const SequenceBlocks& sequence, int group) const;
  bool takes_last_block(const SequenceBlocks& sequence, int group, int64_t length) const;
  void drop_saves(SequenceBlocks& sequence, int64_t beyond);
  void publish_saves(SequenceBlocks& sequence, NodeId node, int64_t position, bool keep);
  void set_published(NodeId node, int group, BlockId block, bool keep);
  void count_holders(const SequenceBlocks& sequence, int group,
                     std::vector<int64_t>& holders) const;

  int64_t block_size_;
  std::vector<CacheGroup> groups_;
  std::vector<BlockPool> pools_;
  PrefixIndex prefixes_;
  std::vector<std::vector<bool>> transient_;  // per group, by block: published only while held
  std::vector<BlockCopy> copies_;
  bool has_states_ = false;
  std::optional<int> open_group_;
};

}  // namespace paceline
