// The stored keys and values of a layer, as kernels take them (KvStore of kernels/operands.h).
#pragma once

#include "kernels/cuda/code/element_types.h"

namespace paceline::cuda {

// Keys are [num_blocks, kv_heads, head_dim, block_size], values [..., block_size, head_dim]; inside
// a block the elements of a head are one piece. Strides count elements.
struct KvBlocks {
  void* keys = nullptr;
  void* values = nullptr;
  float* key_scales = nullptr;  // [num_blocks, kv_heads, block_size], of codes alone
  float* value_scales = nullptr;
  int64_t key_block_stride = 0;
  int64_t key_head_stride = 0;
  int64_t value_block_stride = 0;
  int64_t value_head_stride = 0;
  int64_t scale_block_stride = 0;
  int64_t scale_head_stride = 0;
  int64_t block_size = 0;
  int64_t head_dim = 0;
};

// One slot and kv head of the store.
template <class Stored>
struct KvSlot {
  Stored* key;    // element d at key[d * block_size]
  Stored* value;  // element d at value[d]
  float* key_scale;
  float* value_scale;
};

template <class Stored>
PL_DEVICE KvSlot<Stored> kv_slot(const KvBlocks& kv, int64_t block, int64_t offset, int64_t head) {
  const int64_t scale = block * kv.scale_block_stride + head * kv.scale_head_stride + offset;
  return {static_cast<Stored*>(kv.keys) + block * kv.key_block_stride + head * kv.key_head_stride +
              offset,
          static_cast<Stored*>(kv.values) + block * kv.value_block_stride +
              head * kv.value_head_stride + offset * kv.head_dim,
          kHasScales<Stored> ? kv.key_scales + scale : nullptr,
          kHasScales<Stored> ? kv.value_scales + scale : nullptr};
}

// Of a token, by the number of its slot: there are less than 2^32.
template <class Stored>
PL_DEVICE KvSlot<Stored> kv_slot(const KvBlocks& kv, int64_t slot, int64_t head) {
  const auto index = static_cast<uint32_t>(slot), size = static_cast<uint32_t>(kv.block_size);
  return kv_slot<Stored>(kv, index / size, index % size, head);
}

}  // namespace paceline::cuda
