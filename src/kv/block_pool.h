// BlockPool hands out the blocks of one cache group by number and counts who holds each.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace paceline {

using BlockId = int32_t;
constexpr BlockId kNoBlock = -1;

// A block that nobody holds is free, or cached when it was published: its content may be wanted
// again. Free blocks are reused last in, first out; when there are none left, the block that was
// cached longest ago. Not thread-safe: the engine thread owns it.
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
    bool was_published = false;  // its content was still cached and is lost now
  };
  // A block now held once and not published; nothing when the pool is empty.
  std::optional<Acquired> acquire();
  // One more holder of a block that somebody holds, or the first one of a cached block.
  void share(BlockId block);
  // One holder less; the last one frees the block, or leaves it cached when it is published.
  // Releasing a block that nobody holds is a bug (PL_CHECK).
  void release(BlockId block);

  // The content of a held block may be found again after its holders have gone.
  void publish(BlockId block);
  // It may not any more; a cached block becomes a free one.
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
