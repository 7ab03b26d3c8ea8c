#include "kv/block_pool.h"

#include <limits>

#include "base/error.h"

namespace paceline {

BlockPool::BlockPool(int64_t num_blocks) {
  PL_CHECK(num_blocks >= 0 && num_blocks <= std::numeric_limits<BlockId>::max(),
           "a pool's blocks are numbered by a BlockId");
  references_.assign(static_cast<size_t>(num_blocks), 0);
  free_.reserve(references_.size());
  for (int64_t block = num_blocks; block-- > 0;) free_.push_back(static_cast<BlockId>(block));
}

int64_t BlockPool::reference_count(BlockId block) const {
  PL_CHECK(block >= 0 && block < num_blocks(), "no such block");
  return references_[static_cast<size_t>(block)];
}

std::optional<BlockId> BlockPool::acquire() {
  if (free_.empty()) return std::nullopt;
  const BlockId block = free_.back();
  free_.pop_back();
  references_[static_cast<size_t>(block)] = 1;
  return block;
}

void BlockPool::share(BlockId block) {
  PL_CHECK(reference_count(block) > 0, "a free block can't be shared");
  ++references_[static_cast<size_t>(block)];
}

void BlockPool::release(BlockId block) {
  PL_CHECK(reference_count(block) > 0, "block freed twice");
  if (--references_[static_cast<size_t>(block)] == 0) free_.push_back(block);
}

void BlockPool::check_integrity() const {
  std::vector<bool> listed(references_.size(), false);
  for (BlockId block : free_) {
    PL_CHECK(reference_count(block) == 0, "a held block stands in the free list");
    PL_CHECK(!listed[static_cast<size_t>(block)], "a block stands twice in the free list");
    listed[static_cast<size_t>(block)] = true;
  }
  for (size_t block = 0; block < references_.size(); ++block) {
    PL_CHECK(references_[block] >= 0, "a block has fewer than no holders");
    PL_CHECK(references_[block] > 0 || listed[block], "a block that nobody holds isn't free");
  }
}

}  // namespace paceline
