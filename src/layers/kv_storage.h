// KvStorage owns the keys and values, or the states, of every layer; kv/ assigns their blocks to
// sequences.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/operands.h"

namespace paceline {

struct KvLayer {
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t num_blocks = 0;      // of the layer's cache group
  int64_t state_elements = 0;  // float32 of a state, where a block is one; 0: keys and values
};

class KvStorage {
 public:
  KvStorage(std::span<const KvLayer> layers, int64_t block_size, DType dtype, Memory& memory);

  const KvStore& layer(int64_t index) const { return stores_[static_cast<size_t>(index)]; }
  int64_t block_size() const { return block_size_; }
  bool has_states(int64_t index) const { return states(index).rank() > 0; }
  // [num_blocks, state_elements]
  const Tensor& states(int64_t index) const { return states_[static_cast<size_t>(index)]; }
  size_t size_bytes() const;

 private:
  int64_t block_size_;
  std::vector<Buffer> buffers_;
  std::vector<KvStore> stores_;  // by layer, empty ones of layers with states
  std::vector<Tensor> states_;   // by layer, empty ones of the others
};

// Bytes of one block in this layer: of `block_size` slots, scales included, or of a state.
size_t kv_block_bytes(const KvLayer& layer, int64_t block_size, DType dtype);

}  // namespace paceline
