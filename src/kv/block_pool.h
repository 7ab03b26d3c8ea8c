// BlockPool hands out the blocks of one cache group by number and counts who holds each.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace paceline {

using BlockId = int32_t;
constexpr BlockId kNoBlock = -1;

// Free blocks are reused last in, first out. Not thread-safe: the engine thread owns it.
class BlockPool {
 public:
  explicit BlockPool(int64_t num_blocks);

  int64_t num_blocks() const { return static_cast<int64_t>(references_.size()); }
  int64_t num_free() const { return static_cast<int64_t>(free_.size()); }
  int64_t reference_count(BlockId block) const;

  // A free block, now held once; nothing when the pool is empty.
  std::optional<BlockId> acquire();
  // One more holder of a block that somebody holds already.
  void share(BlockId block);
  // One holder less; the last one frees it. Releasing a free block is a bug (PL_CHECK).
  void release(BlockId block);

  // PL_CHECKs that free list and counts agree and no block stands twice in the list.
  void check_integrity() const;

 private:
  std::vector<int32_t> references_;
  std::vector<BlockId> free_;  // a stack
};

}  // namespace paceline
