// BlockPool hands out the blocks of one cache group by number and counts the holders of each.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace paceline {

using BlockId = int32_t;
constexpr BlockId kNoBlock = -1;

// A block is held, free or cached. Releasing a published block caches it: a prefix search can still
// find its content. acquire() takes the free block released last, and when none is free evicts the
// least recently used cached block. Not thread-safe: the engine thread owns it.
class BlockPool {
 public:
  explicit BlockPool(int64_t num_blocks);

  int64_t num_blocks() const { return static_cast<int64_t>(references_.size()); }
  // Blocks that acquire() can give: free ones and cached ones.
  int64_t num_free() const { return static_cast<int64_t>(free_.size()) + num_cached_; }
  int64_t num_cached() const { return num_cached_; }
  int64_t reference_count(BlockId block) const;
  std::span<const int32_t> reference_counts() const { return references_; }
  bool is_published(BlockId block) const;

  struct Acquired {
    BlockId block = kNoBlock;
    bool was_published = false;  // its cached content was evicted
  };
  // A block now held once and not published; nothing when the pool is empty.
  std::optional<Acquired> acquire();
  // Adds a holder to a held block, or makes a cached block held again.
  void share(BlockId block);
  // Removes a holder; the last one frees the block, or caches it when it is published. Releasing a
  // block without a holder is a bug (PL_CHECK).
  void release(BlockId block);

  // Marks a held block as findable, also after its last release.
  void publish(BlockId block);
  // Undoes publish(); a cached block becomes free.
  void withdraw(BlockId block);

  // PL_CHECKs that lists and counts agree: every block is held, free or cached, and only once.
  void check_integrity() const;

 private:
  struct Links {
    BlockId older = kNoBlock;
    BlockId newer = kNoBlock;
  };
  void append_cached(BlockId block);
  void remove_cached(BlockId block);
  Links& links(BlockId block) { return links_[static_cast<size_t>(block)]; }

  std::vector<int32_t> references_;
  std::vector<bool> published_;
  std::vector<BlockId> free_;  // a stack
  std::vector<Links> links_;   // the list of cached blocks, oldest first
  BlockId oldest_ = kNoBlock;
  BlockId newest_ = kNoBlock;
  int64_t num_cached_ = 0;
};

}  // namespace paceline
