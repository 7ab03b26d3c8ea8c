// SequenceStore holds the keys and values of one layer of a batch, block by block as a cache does.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/gradients.h"
#include "layers/kv_storage.h"

namespace paceline {

class SequenceStore {
 public:
  // `sequences` must outlive it.
  SequenceStore(std::span<const SequenceRows> sequences, int64_t num_kv_heads, int64_t head_dim,
                DType dtype, Memory& memory);

  const KvStore& store() const { return storage_.layer(0); }
  std::span<const int64_t> slots() const { return slots_; }           // [rows]
  std::span<const AttentionSlice> slices() const { return slices_; }  // one a sequence
  std::span<const SequenceRows> sequences() const { return sequences_; }

 private:
  std::span<const SequenceRows> sequences_;
  KvStorage storage_;
  std::vector<int32_t> block_table_;
  std::vector<int64_t> slots_;
  std::vector<AttentionSlice> slices_;
};

}  // namespace paceline
