#include "state/sequence_blocks.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "state/state_cache.h"

namespace paceline {

SequenceBlocks::SequenceBlocks(StateCache& cache)
    : cache_(&cache), groups_(static_cast<size_t>(cache.num_groups())) {}

SequenceBlocks::~SequenceBlocks() { clear(); }

SequenceBlocks::SequenceBlocks(SequenceBlocks&& other) noexcept
    : cache_(std::exchange(other.cache_, nullptr)),
      groups_(std::exchange(other.groups_, {})),
      saves_(std::exchange(other.saves_, {})),
      tail_(std::exchange(other.tail_, kNoNode)),
      num_published_(std::exchange(other.num_published_, 0)),
      publishing_ended_(other.publishing_ended_) {}

SequenceBlocks& SequenceBlocks::operator=(SequenceBlocks&& other) noexcept {
  if (this == &other) return *this;
  clear();
  cache_ = std::exchange(other.cache_, nullptr);
  groups_ = std::exchange(other.groups_, {});
  saves_ = std::exchange(other.saves_, {});
  tail_ = std::exchange(other.tail_, kNoNode);
  num_published_ = std::exchange(other.num_published_, 0);
  publishing_ended_ = other.publishing_ended_;
  return *this;
}

int64_t SequenceBlocks::length() const {
  if (groups_.empty()) return 0;
  int64_t shortest = std::numeric_limits<int64_t>::max();
  for (const Group& group : groups_) shortest = std::min(shortest, group.length);
  return shortest;
}

int64_t SequenceBlocks::slot(int group, int64_t position) const {
  PL_CHECK(position >= 0 && position < length(group), "no slot is reserved for this position");
  const int64_t block_size = cache_->block_size();
  const BlockId block = table(group)[static_cast<size_t>(position / block_size)];
  PL_CHECK(block != kNoBlock, "the window has passed this position");
  return block * block_size + position % block_size;
}

void SequenceBlocks::reserve_tables(int64_t num_blocks) {
  for (Group& group : groups_) group.table.reserve(static_cast<size_t>(num_blocks));
}

void SequenceBlocks::clear() noexcept {
  if (cache_ != nullptr) cache_->release_all(*this);
}

}  // namespace paceline
