#include "state/state_cache.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/state_chunk.h"

namespace paceline {

namespace {

int64_t ceil_divide(int64_t count, int64_t size) {
  return count / size + (count % size != 0 ? 1 : 0);
}

std::vector<int64_t> pool_sizes(std::span<const CacheGroup> groups) {
  std::vector<int64_t> sizes;
  for (const CacheGroup& group : groups) {
    sizes.push_back(group.holds_open_rows ? 0 : group.num_blocks);  // they are never found
  }
  return sizes;
}

}  // namespace

StateCache::StateCache(int64_t block_size, std::span<const CacheGroup> groups)
    : block_size_(block_size),
      groups_(groups.begin(), groups.end()),
      prefixes_(block_size, pool_sizes(groups), random_sip_key()) {
  PL_CHECK(block_size > 0, "a block has at least one slot");
  PL_CHECK(!groups.empty(), "a cache has at least one group");
  pools_.reserve(groups_.size());
  for (const CacheGroup& group : groups_) {
    PL_CHECK(group.window >= 0, "a window is a number of positions, or 0 for all");
    PL_CHECK(group.window == 0 || !group.is_recurrent, "a state has no window");
    has_states_ = has_states_ || group.is_recurrent;
    if (group.holds_open_rows) {
      PL_CHECK(group.is_recurrent && !open_group_, "one recurrent group has the open rows");
      open_group_ = static_cast<int>(pools_.size());
    }
    pools_.emplace_back(group.num_blocks);
    transient_.emplace_back(static_cast<size_t>(group.num_blocks), false);
  }
}

// Other holders of the last block, and prefix searches, would see a write into its slack.
bool StateCache::copies_last_block(const SequenceBlocks& sequence, int group,
                                   int64_t length) const {
  const int64_t used = sequence.length(group);
  if (length <= used || sequence.table(group).empty()) return false;
  const BlockId last = sequence.table(group).back();
  if (last == kNoBlock) return false;
  const bool is_shared = pool(group).reference_count(last) > 1 || pool(group).is_published(last);
  return is_shared && used % block_size(group) != 0;
}

int64_t StateCache::blocks_to_reserve(const SequenceBlocks& sequence, int group,
                                      int64_t length) const {
  const auto held = static_cast<int64_t>(sequence.table(group).size());
  const int64_t more = std::max<int64_t>(0, ceil_divide(length, block_size(group)) - held);
  const bool copies = copies_last_block(sequence, group, length);
  return more + (copies && !takes_last_block(sequence, group, length) ? 1 : 0);
}

// Whether a sequence that would copy a state takes it instead, so that it is found no more.
bool StateCache::takes_last_block(const SequenceBlocks& sequence, int group, int64_t length) const {
  if (!this->group(group).is_recurrent || !copies_last_block(sequence, group, length)) return false;
  return pool(group).num_free() == 0 &&
         pool(group).reference_count(sequence.table(group).back()) == 1;
}

// No row of a chunk that begins is needed.
bool StateCache::copies_content(const SequenceBlocks& sequence, int group) const {
  return !this->group(group).holds_open_rows || sequence.length(group) % kStateChunk != 0;
}

BlockId StateCache::acquire(int group) {
  const auto acquired = pools_[static_cast<size_t>(group)].acquire();
  PL_CHECK(acquired.has_value(), "blocks are counted before they are taken");
  if (acquired->was_published) prefixes_.forget(group, acquired->block);
  return acquired->block;
}

void StateCache::release(int group, BlockId block) {
  BlockPool& pool = pools_[static_cast<size_t>(group)];
  pool.release(block);
  if (pool.reference_count(block) > 0 || !pool.is_published(block)) return;
  if (!transient_[static_cast<size_t>(group)][static_cast<size_t>(block)]) return;
  pool.withdraw(block);
  prefixes_.forget(group, block);
}

// Releases from the last block to the first: the next sequence acquires free blocks in the same
// order, and the end of a cached chain is evicted before its beginning.
void StateCache::release_all(SequenceBlocks& sequence) noexcept {
  for (size_t g = 0; g < sequence.groups_.size(); ++g) {
    SequenceBlocks::Group& group = sequence.groups_[g];
    for (; !group.table.empty() && group.table.back() != kNoBlock; group.table.pop_back())
      release(static_cast<int>(g), group.table.back());
    group.table.clear();
    group.first_kept = 0;
    group.length = 0;
  }
  drop_saves(sequence, 0);
  if (sequence.tail_ != kNoNode) prefixes_.unpin(std::exchange(sequence.tail_, kNoNode));
  sequence.num_published_ = 0;
  sequence.publishing_ended_ = false;
}

void StateCache::grow(SequenceBlocks& sequence, int group, int64_t length) {
  auto& own = sequence.groups_[static_cast<size_t>(group)];
  if (takes_last_block(sequence, group, length)) {
    pools_[static_cast<size_t>(group)].withdraw(own.table.back());
    prefixes_.forget(group, own.table.back());
  } else if (copies_last_block(sequence, group, length)) {
    const BlockId from = own.table.back();
    own.table.back() = acquire(group);
    if (copies_content(sequence, group)) {
      copies_.push_back({.group = group, .from = from, .to = own.table.back()});
    }
    release(group, from);
  }
  const int64_t wanted = ceil_divide(length, block_size(group));
  while (static_cast<int64_t>(own.table.size()) < wanted) own.table.push_back(acquire(group));
  own.length = std::max(own.length, length);
}

int64_t StateCache::length_wanted(const SequenceBlocks& sequence, int group, int64_t full_length,
                                  int64_t windowed_length) const {
  const bool full = groups_[static_cast<size_t>(group)].window == 0;
  return std::max(sequence.length(group), full ? full_length : windowed_length);
}

std::optional<OutOfBlocks> StateCache::reserve(SequenceBlocks& sequence, int64_t full_length,
                                               int64_t windowed_length) {
  PL_CHECK(sequence.cache_ == this, "the sequence belongs to another cache");
  for (int group = 0; group < num_groups(); ++group) {
    const int64_t length = length_wanted(sequence, group, full_length, windowed_length);
    const int64_t needed = blocks_to_reserve(sequence, group, length);
    if (needed > pool(group).num_free()) return OutOfBlocks{group, needed, pool(group).num_free()};
  }
  for (int group = 0; group < num_groups(); ++group) {  // allocations, which may throw, come first
    auto& table = sequence.groups_[static_cast<size_t>(group)].table;
    const int64_t length = length_wanted(sequence, group, full_length, windowed_length);
    const auto size = static_cast<size_t>(ceil_divide(length, block_size(group)));
    if (size > table.capacity()) table.reserve(std::max(size, 2 * table.capacity()));
  }
  copies_.reserve(copies_.size() + static_cast<size_t>(num_groups()));
  for (int group = 0; group < num_groups(); ++group) {
    grow(sequence, group, length_wanted(sequence, group, full_length, windowed_length));
  }
  return std::nullopt;
}

std::optional<OutOfBlocks> StateCache::append(SequenceBlocks& sequence, int64_t count) {
  PL_CHECK(count >= 0, "a sequence is shortened by truncate");
  constexpr int64_t kLongest = std::numeric_limits<int64_t>::max();
  const int64_t used = sequence.length();
  const int64_t length = count > kLongest - used ? kLongest : used + count;
  return reserve(sequence, length, length);
}

void StateCache::drop_saves(SequenceBlocks& sequence, int64_t beyond) {
  auto& saves = sequence.saves_;
  for (; !saves.empty() && saves.back().position > beyond; saves.pop_back()) {
    release(saves.back().group, saves.back().block);
  }
}

int64_t StateCache::first_block_seen(int group, int64_t length) const {
  const int64_t window = groups_[static_cast<size_t>(group)].window;
  return window == 0 ? 0 : std::max<int64_t>(0, length - window + 1) / block_size_;
}

void StateCache::release_outside_window(SequenceBlocks& sequence, int64_t position) {
  PL_CHECK(sequence.cache_ == this, "the sequence belongs to another cache");
  PL_CHECK(position >= 0 && position <= sequence.length(),
           "the next row is a reserved position or the one after them");
  for (int group = 0; group < num_groups(); ++group) {
    const int64_t first_seen = first_block_seen(group, position);
    auto& own = sequence.groups_[static_cast<size_t>(group)];
    for (; own.first_kept < first_seen; ++own.first_kept) {
      BlockId& block = own.table[static_cast<size_t>(own.first_kept)];
      release(group, std::exchange(block, kNoBlock));
    }
  }
}

void StateCache::truncate(SequenceBlocks& sequence, int64_t length) {
  PL_CHECK(sequence.cache_ == this, "the sequence belongs to another cache");
  PL_CHECK(length >= 0 && length <= sequence.length(), "truncate never lengthens");
  drop_saves(sequence, length);
  for (int group = 0; group < num_groups(); ++group) {
    const int64_t num_kept = ceil_divide(length, block_size(group));
    auto& own = sequence.groups_[static_cast<size_t>(group)];
    PL_CHECK(own.first_kept <= first_block_seen(group, length),
             "the window has passed blocks that the next row would see");
    for (; static_cast<int64_t>(own.table.size()) > num_kept; own.table.pop_back())
      release(group, own.table.back());
    own.length = length;
  }
  // Published blocks stay findable, but the sequence no longer continues their chain.
  if (sequence.num_published_ * block_size_ > length) sequence.publishing_ended_ = true;
}

void StateCache::release_open_rows(SequenceBlocks& sequence) {
  PL_CHECK(sequence.cache_ == this, "the sequence belongs to another cache");
  if (!open_group_) return;
  auto& table = sequence.groups_[static_cast<size_t>(*open_group_)].table;
  for (; !table.empty(); table.pop_back()) release(*open_group_, table.back());
}

SequenceBlocks StateCache::fork(const SequenceBlocks& sequence) {
  PL_CHECK(sequence.cache_ == this, "the sequence belongs to another cache");
  SequenceBlocks copy(*this);
  copy.groups_ = sequence.groups_;
  copy.tail_ = sequence.tail_;
  copy.num_published_ = sequence.num_published_;
  copy.publishing_ended_ = sequence.publishing_ended_;
  if (copy.tail_ != kNoNode) prefixes_.pin(copy.tail_);
  for (int group = 0; group < num_groups(); ++group) {
    for (const BlockId block : copy.table(group)) {
      if (block != kNoBlock) pools_[static_cast<size_t>(group)].share(block);
    }
  }
  return copy;
}

// The window of a step's first row and the step itself span window - 1 + chunk positions; they
// touch the most blocks when the first is the last of its block.
int64_t StateCache::blocks_for_window(int64_t window, int64_t chunk, int64_t block_size) {
  PL_CHECK(window > 0 && chunk > 0 && block_size > 0, "a window, a step and a block are not empty");
  const int64_t span = window - 1 + chunk;
  return ceil_divide(span - 1, block_size) + 1;
}

// A windowed pool smaller than blocks_for_window is full before the window releases a block.
int64_t StateCache::capacity_tokens(int64_t chunk) const {
  int64_t capacity = std::numeric_limits<int64_t>::max();
  for (const CacheGroup& group : groups_) {
    if (group.is_recurrent && group.num_blocks > 0) continue;
    if (group.window > 0 && group.num_blocks >= blocks_for_window(group.window, chunk, block_size_))
      continue;
    capacity = std::min(capacity, group.num_blocks * block_size_);
  }
  return capacity;
}

}  // namespace paceline
