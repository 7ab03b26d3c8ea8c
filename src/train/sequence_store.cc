#include "train/sequence_store.h"

#include <array>
#include <numeric>

#include "base/divide_up.h"

namespace paceline {
namespace {

constexpr int64_t kBlockSize = 64;

int64_t num_blocks(std::span<const SequenceRows> sequences) {
  int64_t total = 0;
  for (const SequenceRows& one : sequences) total += divide_up(one.num_rows, kBlockSize);
  return total;
}

}  // namespace

SequenceStore::SequenceStore(std::span<const SequenceRows> sequences, int64_t num_kv_heads,
                             int64_t head_dim, DType dtype, Memory& memory)
    : sequences_(sequences),
      storage_(std::array{KvLayer{.num_kv_heads = num_kv_heads,
                                  .head_dim = head_dim,
                                  .num_blocks = num_blocks(sequences)}},
               kBlockSize, dtype, memory),
      block_table_(static_cast<size_t>(num_blocks(sequences))) {
  std::iota(block_table_.begin(), block_table_.end(), 0);
  int64_t first_block = 0;
  for (const SequenceRows& one : sequences) {
    for (int64_t i = 0; i < one.num_rows; ++i) slots_.push_back(first_block * kBlockSize + i);
    const int64_t count = divide_up(one.num_rows, kBlockSize);
    slices_.push_back({.first_row = one.first_row,
                       .num_rows = one.num_rows,
                       .first_position = 0,
                       .block_table = std::span<const int32_t>(block_table_)
                                          .subspan(static_cast<size_t>(first_block),
                                                   static_cast<size_t>(count))});
    first_block += count;
  }
}

}  // namespace paceline
