#include "tokenizer/merge_table.h"

#include <bit>

#include "base/error.h"
#include "tokenizer/hashing.h"

namespace paceline {

MergeTable::MergeTable(size_t num_merges)
    : slots_(std::bit_ceil(num_merges + num_merges / 2 + 2)), key_(random_hash_key()) {}

size_t MergeTable::slot_of(TokenId left, TokenId right) const {
  const uint64_t pair =
      (uint64_t{static_cast<uint32_t>(left)} << 32) | static_cast<uint32_t>(right);
  size_t at = hash_integer(pair, key_) & (slots_.size() - 1);
  for (;; at = (at + 1) & (slots_.size() - 1)) {
    const Slot& slot = slots_[at];
    if (slot.rank == Merge::kNone || (slot.left == left && slot.right == right)) return at;
  }
}

void MergeTable::set(TokenId left, TokenId right, Merge merge) {
  Slot& slot = slots_[slot_of(left, right)];
  if (slot.rank == Merge::kNone) {
    PL_CHECK(num_merges_ + 1 < slots_.size(), "more merges than announced");
    ++num_merges_;
  }
  slot = {left, right, merge.rank, merge.token};
}

}  // namespace paceline
