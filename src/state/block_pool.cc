#include "state/block_pool.h"

#include <limits>

#include "base/error.h"

namespace paceline {

BlockPool::BlockPool(int64_t num_blocks) {
  PL_CHECK(num_blocks >= 0 && num_blocks <= std::numeric_limits<BlockId>::max(),
           "a pool's blocks are numbered by a BlockId");
  references_.assign(static_cast<size_t>(num_blocks), 0);
  published_.assign(references_.size(), false);
  links_.resize(references_.size());
  free_.reserve(references_.size());
  for (int64_t block = num_blocks; block-- > 0;) free_.push_back(static_cast<BlockId>(block));
}

int64_t BlockPool::reference_count(BlockId block) const {
  PL_CHECK(block >= 0 && block < num_blocks(), "no such block");
  return references_[static_cast<size_t>(block)];
}

bool BlockPool::is_published(BlockId block) const {
  PL_CHECK(block >= 0 && block < num_blocks(), "no such block");
  return published_[static_cast<size_t>(block)];
}

std::optional<BlockPool::Acquired> BlockPool::acquire() {
  Acquired acquired;
  if (!free_.empty()) {
    acquired.block = free_.back();
    free_.pop_back();
  } else if (oldest_ != kNoBlock) {
    acquired = {.block = oldest_, .was_published = true};
    remove_cached(acquired.block);
    published_[static_cast<size_t>(acquired.block)] = false;
  } else {
    return std::nullopt;
  }
  references_[static_cast<size_t>(acquired.block)] = 1;
  return acquired;
}

void BlockPool::share(BlockId block) {
  if (reference_count(block) == 0) {
    PL_CHECK(is_published(block), "a free block can't be shared");
    remove_cached(block);
  }
  ++references_[static_cast<size_t>(block)];
}

void BlockPool::release(BlockId block) {
  PL_CHECK(reference_count(block) > 0, "block freed twice");
  if (--references_[static_cast<size_t>(block)] > 0) return;
  if (published_[static_cast<size_t>(block)]) {
    append_cached(block);
  } else {
    free_.push_back(block);
  }
}

void BlockPool::publish(BlockId block) {
  PL_CHECK(reference_count(block) > 0, "only a held block can be published");
  published_[static_cast<size_t>(block)] = true;
}

void BlockPool::withdraw(BlockId block) {
  PL_CHECK(is_published(block), "the block was not published");
  published_[static_cast<size_t>(block)] = false;
  if (reference_count(block) > 0) return;
  remove_cached(block);
  free_.push_back(block);
}

void BlockPool::append_cached(BlockId block) {
  links(block) = {.older = newest_, .newer = kNoBlock};
  (newest_ == kNoBlock ? oldest_ : links(newest_).newer) = block;
  newest_ = block;
  ++num_cached_;
}

void BlockPool::remove_cached(BlockId block) {
  const Links at = links(block);
  (at.older == kNoBlock ? oldest_ : links(at.older).newer) = at.newer;
  (at.newer == kNoBlock ? newest_ : links(at.newer).older) = at.older;
  --num_cached_;
}

void BlockPool::check_integrity() const {
  std::vector<bool> listed(references_.size(), false);
  const auto list = [&](BlockId block, bool published) {
    PL_CHECK(reference_count(block) == 0, "a held block is in the list of free or cached blocks");
    PL_CHECK(is_published(block) == published, "a block stands in the wrong list");
    PL_CHECK(!listed[static_cast<size_t>(block)], "a block occurs twice in the lists");
    listed[static_cast<size_t>(block)] = true;
  };
  for (const BlockId block : free_) list(block, false);
  int64_t count = 0;
  BlockId older = kNoBlock;
  for (BlockId block = oldest_; block != kNoBlock; ++count) {
    list(block, true);
    const Links& at = links_[static_cast<size_t>(block)];
    PL_CHECK(at.older == older, "the list of cached blocks is torn");
    older = block;
    block = at.newer;
  }
  PL_CHECK(newest_ == older, "the list of cached blocks ends elsewhere");
  PL_CHECK(count == num_cached_, "more or fewer cached blocks than counted");
  for (size_t block = 0; block < references_.size(); ++block) {
    PL_CHECK(references_[block] >= 0, "a block has fewer than no holders");
    PL_CHECK(references_[block] > 0 || listed[block], "a block is neither held, free nor cached");
  }
}

}  // namespace paceline
