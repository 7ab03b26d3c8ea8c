// KvStorage owns the keys and values, or the states, of every layer; state/ assigns their blocks to
// sequences.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/operands.h"

namespace paceline {

// Numbers of elements of a state and of the rows of its open chunk.
struct StateElements {
  int64_t state = 0;
  int64_t open_rows = 0;

  bool operator==(const StateElements&) const = default;
};

// Those of an operation's shape.
template <class Shape>
StateElements elements_of(const Shape& shape) {
  return {.state = shape.state_elements(), .open_rows = shape.open_elements()};
}

// Those of a layer: of its convolution, and of the matrices beside it.
struct LayerStateElements {
  StateElements convolution;
  StateElements matrices;

  int64_t state() const { return convolution.state + matrices.state; }
  int64_t open_rows() const { return convolution.open_rows + matrices.open_rows; }
};

constexpr int64_t kOwnCache = -1;  // of a layer that shares no other's keys and values

struct KvLayer {
  int64_t num_kv_heads = 0;  // 0: no memory of its own
  int64_t head_dim = 0;
  int64_t num_blocks = 0;           // of the layer's cache group
  LayerStateElements states{};      // where a block is a state; empty: keys and values
  int64_t num_open_blocks = 0;      // of open rows, where there are states
  DType state_dtype = DType::f32;   // of matrices, float32 or bfloat16; all else is float32
  int64_t values_in_keys = 0;       // as KvStore::values_in_keys
  int64_t shares_with = kOwnCache;  // an earlier layer, whose keys and values it reads

  bool has_states() const { return states.state() > 0; }
};

// The states of one layer.
struct StateStore {
  StateMemory convolution;
  StateMemory matrices;
};

class KvStorage {
 public:
  KvStorage(std::span<const KvLayer> layers, int64_t block_size, DType dtype, Memory& memory);

  const KvStore& layer(int64_t index) const { return stores_[static_cast<size_t>(index)]; }
  int64_t block_size() const { return block_size_; }
  // Whether keys and values of the layer are its own, so that their blocks are copied with it.
  bool has_own_keys(int64_t index) const {
    return buffers_[static_cast<size_t>(index)].size_bytes() > 0 && !has_states(index);
  }
  bool has_states(int64_t index) const { return states(index).convolution.states.rank() > 0; }
  const StateStore& states(int64_t index) const { return states_[static_cast<size_t>(index)]; }
  size_t size_bytes() const;

 private:
  int64_t block_size_;
  std::vector<Buffer> buffers_;
  std::vector<KvStore> stores_;     // by layer, empty ones of layers with states
  std::vector<StateStore> states_;  // by layer, empty ones of the others
};

// Bytes of one block in this layer: of `block_size` slots, scales included, or of a state.
size_t kv_block_bytes(const KvLayer& layer, int64_t block_size, DType dtype);
// Bytes of a state whose matrices have that dtype.
size_t state_bytes(const LayerStateElements& states, DType dtype);
// Bytes of the rows of a sequence's open chunk.
size_t open_rows_bytes(const LayerStateElements& states);

}  // namespace paceline
