#include "kv/kv_cache.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"

namespace paceline {

namespace {

int64_t ceil_divide(int64_t count, int64_t size) {
  return count / size + (count % size != 0 ? 1 : 0);
}

}  // namespace

SequenceBlocks::SequenceBlocks(KvCache& cache)
    : cache_(&cache), tables_(cache.groups_.size()), first_kept_(cache.groups_.size(), 0) {}

SequenceBlocks::~SequenceBlocks() { release_all(); }

SequenceBlocks::SequenceBlocks(SequenceBlocks&& other) noexcept
    : cache_(std::exchange(other.cache_, nullptr)),
      length_(std::exchange(other.length_, 0)),
      tables_(std::exchange(other.tables_, {})),
      first_kept_(std::exchange(other.first_kept_, {})) {}

SequenceBlocks& SequenceBlocks::operator=(SequenceBlocks&& other) noexcept {
  if (this == &other) return *this;
  release_all();
  cache_ = std::exchange(other.cache_, nullptr);
  length_ = std::exchange(other.length_, 0);
  tables_ = std::exchange(other.tables_, {});
  first_kept_ = std::exchange(other.first_kept_, {});
  return *this;
}

int64_t SequenceBlocks::slot(int group, int64_t position) const {
  PL_CHECK(position >= 0 && position < length_, "no slot is reserved for this position");
  const int64_t block_size = cache_->block_size_;
  const BlockId block = table(group)[static_cast<size_t>(position / block_size)];
  PL_CHECK(block != kNoBlock, "the window has passed this position");
  return block * block_size + position % block_size;
}

// From the last block to the first, so that the next sequence gets them in the same order.
void SequenceBlocks::release_all() noexcept {
  for (size_t group = 0; group < tables_.size(); ++group) {
    auto& table = tables_[group];
    for (; !table.empty() && table.back() != kNoBlock; table.pop_back())
      cache_->pools_[group].release(table.back());
    table.clear();
    first_kept_[group] = 0;
  }
  length_ = 0;
}

KvCache::KvCache(int64_t block_size, std::span<const CacheGroup> groups)
    : block_size_(block_size), groups_(groups.begin(), groups.end()) {
  PL_CHECK(block_size > 0, "a block has at least one slot");
  PL_CHECK(!groups.empty(), "a cache has at least one group");
  pools_.reserve(groups_.size());
  for (const CacheGroup& group : groups_) {
    PL_CHECK(group.window >= 0, "a window is a number of positions, or 0 for all");
    pools_.emplace_back(group.num_blocks);
  }
}

// Every table has ceil(length / block_size) entries, so all groups need the same number.
int64_t KvCache::blocks_needed(const SequenceBlocks& sequence, int64_t count) const {
  const int64_t used = sequence.length_ % block_size_;
  const int64_t slack = used == 0 ? 0 : block_size_ - used;
  return ceil_divide(std::max<int64_t>(0, count - slack), block_size_);
}

std::optional<OutOfBlocks> KvCache::append(SequenceBlocks& sequence, int64_t count) {
  PL_CHECK(sequence.cache_ == this, "the sequence belongs to another cache");
  PL_CHECK(count >= 0, "a sequence is shortened by truncate");
  const int64_t needed = blocks_needed(sequence, count);
  for (int group = 0; group < num_groups(); ++group) {
    if (needed > pool(group).num_free()) return OutOfBlocks{group, needed, pool(group).num_free()};
  }
  for (auto& table : sequence.tables_) {  // what may throw comes before what changes anything
    const size_t size = table.size() + static_cast<size_t>(needed);
    if (size > table.capacity()) table.reserve(std::max(size, 2 * table.capacity()));
  }
  for (size_t group = 0; group < groups_.size(); ++group) {
    for (int64_t i = 0; i < needed; ++i)
      sequence.tables_[group].push_back(*pools_[group].acquire());
  }
  sequence.length_ += count;
  return std::nullopt;
}

void KvCache::pass(SequenceBlocks& sequence, int64_t position) {
  PL_CHECK(sequence.cache_ == this, "the sequence belongs to another cache");
  PL_CHECK(position >= 0 && position <= sequence.length_,
           "the next row is a reserved position or the one after them");
  for (size_t group = 0; group < groups_.size(); ++group) {
    if (groups_[group].window == 0) continue;
    const int64_t first_seen = std::max<int64_t>(0, position - groups_[group].window + 1);
    int64_t& first_kept = sequence.first_kept_[group];
    for (; first_kept < first_seen / block_size_; ++first_kept) {
      BlockId& block = sequence.tables_[group][static_cast<size_t>(first_kept)];
      pools_[group].release(std::exchange(block, kNoBlock));
    }
  }
}

void KvCache::truncate(SequenceBlocks& sequence, int64_t length) {
  PL_CHECK(sequence.cache_ == this, "the sequence belongs to another cache");
  PL_CHECK(length >= 0 && length <= sequence.length_, "truncate never lengthens");
  const int64_t num_kept = ceil_divide(length, block_size_);
  for (size_t group = 0; group < groups_.size(); ++group) {
    const int64_t first_seen =
        groups_[group].window == 0 ? 0 : std::max<int64_t>(0, length - groups_[group].window + 1);
    PL_CHECK(sequence.first_kept_[group] * block_size_ <= first_seen,
             "the window has passed blocks that the next row would see");
    auto& table = sequence.tables_[group];
    for (; static_cast<int64_t>(table.size()) > num_kept; table.pop_back())
      pools_[group].release(table.back());
  }
  sequence.length_ = length;
}

// The window of a step's first row and the step itself span window - 1 + chunk positions; they
// touch the most blocks when the first is the last of its block.
int64_t KvCache::blocks_for_window(int64_t window, int64_t chunk, int64_t block_size) {
  PL_CHECK(window > 0 && chunk > 0 && block_size > 0, "a window, a step and a block are not empty");
  const int64_t span = window - 1 + chunk;
  return ceil_divide(span - 1, block_size) + 1;
}

// A windowed pool smaller than blocks_for_window fills up before the window has let go of one
// block.
int64_t KvCache::capacity_tokens(int64_t chunk) const {
  int64_t capacity = std::numeric_limits<int64_t>::max();
  for (const CacheGroup& group : groups_) {
    if (group.window > 0 && group.num_blocks >= blocks_for_window(group.window, chunk, block_size_))
      continue;
    capacity = std::min(capacity, group.num_blocks * block_size_);
  }
  return capacity;
}

void KvCache::count_holders(const SequenceBlocks& sequence, int group,
                            std::vector<int64_t>& holders) const {
  const auto table = sequence.table(group);
  const int64_t first_kept = sequence.first_kept_[static_cast<size_t>(group)];
  const auto num_blocks = static_cast<int64_t>(table.size());
  PL_CHECK(num_blocks == ceil_divide(sequence.length_, block_size_),
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
