// MergeTable: the pairs of tokens that merge, their ranks and results.
#pragma once

#include <cstdint>
#include <vector>

#include "paceline/tokenizer.h"
#include "tokenizer/hashing.h"

namespace paceline {

struct Merge {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t rank = kNone;  // lower merges first; kNone: the pair doesn't merge
  TokenId token = -1;     // what it becomes
};

class MergeTable {
 public:
  // `num_merges` is the capacity; setting more merges is an error of the caller.
  explicit MergeTable(size_t num_merges = 0);

  // A pair that is set again gets the later rank, as in HF tokenizers.
  void set(TokenId left, TokenId right, Merge merge);

  Merge find(TokenId left, TokenId right) const {
    const Slot& slot = slots_[slot_of(left, right)];
    return {slot.rank, slot.token};
  }

  // Prefetches the memory that set() or find() reads.
  void prepare(TokenId left, TokenId right) const {
    __builtin_prefetch(slots_.data() + start_of(left, right));
  }

 private:
  struct Slot {
    TokenId left = -1;
    TokenId right = -1;
    uint32_t rank = Merge::kNone;  // kNone: free
    TokenId token = -1;
  };

  size_t start_of(TokenId left, TokenId right) const {
    const uint64_t pair =
        (uint64_t{static_cast<uint32_t>(left)} << 32) | static_cast<uint32_t>(right);
    return hash_integer(pair, key_) & mask_;
  }

  // The slot that holds the pair, or the free one where it belongs.
  size_t slot_of(TokenId left, TokenId right) const {
    const Slot* slots = slots_.data();
    size_t at = start_of(left, right);
    for (;; at = (at + 1) & mask_) {
      const Slot& slot = slots[at];
      if (slot.rank == Merge::kNone || (slot.left == left && slot.right == right)) return at;
    }
  }

  std::vector<Slot> slots_;  // open addressing; a power of two, at most two thirds full
  size_t mask_;
  uint64_t key_;
  size_t num_merges_ = 0;
};

}  // namespace paceline
