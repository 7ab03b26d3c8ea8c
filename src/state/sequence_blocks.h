// SequenceBlocks is one sequence's hold on its blocks: a block table per cache group.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "state/block_pool.h"
#include "state/prefix_index.h"

namespace paceline {

class StateCache;

// A block that gets the sequence's state when it has computed the rows below `position`.
struct SavedState {
  int64_t position = 0;
  int group = 0;
  BlockId block = kNoBlock;
};

// Its destructor releases all blocks. Movable; the cache must outlive it.
class SequenceBlocks {
 public:
  SequenceBlocks() = default;
  explicit SequenceBlocks(StateCache& cache);
  ~SequenceBlocks();
  SequenceBlocks(SequenceBlocks&& other) noexcept;
  SequenceBlocks& operator=(SequenceBlocks&& other) noexcept;
  SequenceBlocks(const SequenceBlocks&) = delete;
  SequenceBlocks& operator=(const SequenceBlocks&) = delete;

  // Token slots reserved so far: in every group, and in one.
  int64_t length() const;
  int64_t length(int group) const { return groups_[static_cast<size_t>(group)].length; }
  // Block index i holds positions [i * block_size, (i + 1) * block_size); kNoBlock where the window
  // has passed.
  std::span<const BlockId> table(int group) const {
    return groups_[static_cast<size_t>(group)].table;
  }
  // Blocks below this index were released outside the window.
  int64_t first_kept(int group) const { return groups_[static_cast<size_t>(group)].first_kept; }
  // Those that are kept.
  int64_t num_kept(int group) const { return std::ssize(table(group)) - first_kept(group); }
  // Flat slot (block * block_size + offset) of `position` in the group's pool.
  int64_t slot(int group, int64_t position) const;

  // The states to save, in ascending positions. publish() makes those up to its position findable.
  std::span<const SavedState> saves() const { return saves_; }

  // Full blocks of its chain that are in the prefix index, or were when it computed them.
  int64_t num_published() const { return num_published_; }

  // Reserves tables of `num_blocks` entries, so that growing up to there allocates nothing.
  void reserve_tables(int64_t num_blocks);
  // Releases all blocks; afterwards it is like a new one.
  void clear() noexcept;

 private:
  friend class StateCache;
  struct Group {
    std::vector<BlockId> table;  // ceil(length / block_size) entries
    int64_t first_kept = 0;
    int64_t length = 0;
  };

  StateCache* cache_ = nullptr;
  std::vector<Group> groups_;
  std::vector<SavedState> saves_;
  NodeId tail_ = kNoNode;  // the node of its last published block, pinned
  int64_t num_published_ = 0;
  bool publishing_ended_ = false;  // its chain can't be continued in the index
};

}  // namespace paceline
