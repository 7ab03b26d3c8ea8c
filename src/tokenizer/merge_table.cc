#include "tokenizer/merge_table.h"

#include <bit>

#include "base/error.h"

namespace paceline {

MergeTable::MergeTable(size_t num_merges)
    : slots_(std::bit_ceil(num_merges + num_merges / 2 + 2)),
      mask_(slots_.size() - 1),
      key_(random_hash_key()) {}

void MergeTable::set(TokenId left, TokenId right, Merge merge) {
  Slot& slot = slots_[slot_of(left, right)];
  if (slot.rank == Merge::kNone) {
    PL_CHECK(num_merges_ + 1 < slots_.size(), "more merges than announced");
    ++num_merges_;
  }
  slot = {left, right, merge.rank, merge.token};
}

}  // namespace paceline
