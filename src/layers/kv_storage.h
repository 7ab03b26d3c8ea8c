// KvStorage owns the keys and values of every layer; kv/ assigns their blocks to sequences.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/operands.h"

namespace paceline {

struct KvLayer {
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t num_blocks = 0;  // of the layer's cache group
};

class KvStorage {
 public:
  KvStorage(std::span<const KvLayer> layers, int64_t block_size, DType dtype, Memory& memory);

  const KvStore& layer(int64_t index) const { return stores_[static_cast<size_t>(index)]; }
  size_t size_bytes() const;

 private:
  std::vector<Buffer> buffers_;
  std::vector<KvStore> stores_;
};

// Bytes of one block of `block_size` slots in this layer, scales included.
size_t kv_block_bytes(const KvLayer& layer, int64_t block_size, DType dtype);

}  // namespace paceline
